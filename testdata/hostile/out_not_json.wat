;; Output that is not JSON.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "<html>")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 6)))
    (i32.const 0)))

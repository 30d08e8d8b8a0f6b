;; Output that is not UTF-8.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\22\ff\fe\22")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 4)))
    (i32.const 0)))

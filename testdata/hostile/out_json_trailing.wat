;; Two JSON values.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{} {}")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 5)))
    (i32.const 0)))

;; JSON with a NUL behind it.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}\00")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 3)))
    (i32.const 0)))

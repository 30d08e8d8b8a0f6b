;; A hundred thousand open brackets.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 4)
  (func (export "run") (result i32)
    (memory.fill (i32.const 0) (i32.const 91) (i32.const 100000))
    (memory.fill (i32.const 100000) (i32.const 93) (i32.const 100000))
    (drop (call $output (i32.const 0) (i32.const 200000)))
    (i32.const 0)))

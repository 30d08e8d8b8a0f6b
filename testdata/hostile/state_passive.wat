;; Copies a passive segment and drops it.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data $once "1")
  (func (export "run") (result i32)
    (memory.init $once (i32.const 0) (i32.const 0) (i32.const 1))
    (data.drop $once)
    (drop (call $output (i32.const 0) (i32.const 1)))
    (i32.const 0)))

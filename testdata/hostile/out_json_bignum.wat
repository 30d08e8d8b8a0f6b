;; Numbers that no float holds.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "[123456789012345678901234567890.12345678901234567890e-5,-0,1E400]")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 65)))
    (i32.const 0)))

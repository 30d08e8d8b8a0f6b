;; Output of the last byte of memory.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 65535) "7")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 65535) (i32.const 1)))
    (i32.const 0)))

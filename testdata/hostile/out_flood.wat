;; Output of 2 MiB.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 64)
  (func (export "run") (result i32)
    (memory.fill (i32.const 0) (i32.const 49) (i32.const 2097152))
    (drop (call $output (i32.const 0) (i32.const 2097152)))
    (i32.const 0)))

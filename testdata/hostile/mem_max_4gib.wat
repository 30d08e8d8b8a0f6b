;; Starts small and declares that it may grow to 4 GiB.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1 65536)
  (data (i32.const 0) "{}")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 2)))
    (i32.const 0)))

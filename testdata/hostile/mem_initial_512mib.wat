;; Starts with 512 MiB.
(module
  (memory (export "memory") 8192)
  (func (export "run") (result i32) (i32.const 0)))

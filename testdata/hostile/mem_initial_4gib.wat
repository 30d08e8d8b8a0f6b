;; Starts with 4 GiB.
(module
  (memory (export "memory") 65536)
  (func (export "run") (result i32) (i32.const 0)))

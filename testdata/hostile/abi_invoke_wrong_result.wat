;; The capability gives a 64-bit number.
(module
  (memory (export "memory") 1)
  (func (export "run") (result i64) (i64.const 0)))

;; A table of 2^32 - 1 entries.
(module
  (table 4294967295 funcref)
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

;; Two tables that are too large together.
(module
  (table 60000 funcref)
  (table 60000 externref)
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

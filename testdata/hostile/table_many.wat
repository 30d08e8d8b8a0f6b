;; Five tables.
(module
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

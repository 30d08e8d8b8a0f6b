;; Imports a host function as a table.
(module
  (import "ecotone_v1" "output" (table 1 funcref))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

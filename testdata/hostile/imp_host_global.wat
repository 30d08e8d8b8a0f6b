;; Imports a host function as a global.
(module
  (import "ecotone_v1" "output" (global i32))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

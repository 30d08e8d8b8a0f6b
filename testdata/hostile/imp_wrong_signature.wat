;; Imports a host function with a type of its own.
(module
  (import "ecotone_v1" "output" (func (param i64) (result i32)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

;; Imports a host function as a memory.
(module
  (import "ecotone_v1" "output" (memory 1))
  (export "memory" (memory 0))
  (func (export "run") (result i32) (i32.const 0)))

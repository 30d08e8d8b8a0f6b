;; Another version of the ABI.
(module
  (import "ecotone_v2" "output" (func (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

;; A function that only the host may add.
(module
  (import "ecotone_v1" "ecotone_refuel" (func (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

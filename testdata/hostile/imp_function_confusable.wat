;; A function whose name looks like the ABI's.
(module
  (import "ecotone_v1" "output\00" (func (param i32 i32) (result i64)))
  (import "ecotone_v1" "Output" (func (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

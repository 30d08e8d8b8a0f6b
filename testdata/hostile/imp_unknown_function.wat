;; Imports a host function that is not there.
(module
  (import "ecotone_v1" "file_chmod" (func (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

;; Names that look like the ABI's: upper case, a space behind, a Cyrillic letter.
(module
  (import "Ecotone_v1" "output" (func (param i32 i32) (result i64)))
  (import "ecotone_v1 " "output" (func (param i32 i32) (result i64)))
  (import "ecot\d0\bene_v1" "output" (func (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

;; An initialiser that takes a number.
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (param i32))
  (func (export "run") (result i32) (i32.const 0)))

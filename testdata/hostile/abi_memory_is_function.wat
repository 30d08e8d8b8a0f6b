;; memory is a function.
(module
  (memory 1)
  (func (export "memory"))
  (func (export "run") (result i32) (i32.const 0)))

;; Both faces: a program and a capability.
(module
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "_initialize"))
  (func (export "run") (result i32) (i32.const 0)))

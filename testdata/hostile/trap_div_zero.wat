;; Divides by zero.
(module
  (memory (export "memory") 1)
  (global $zero (mut i32) (i32.const 0))
  (func (export "run") (result i32)
    (i32.div_u (i32.const 1) (global.get $zero))))

;; Arithmetic in a constant expression.
;; flags: --enable-extended-const
(module
  (memory (export "memory") 1)
  (global i32 (i32.add (i32.const 1) (i32.const 2)))
  (func (export "run") (result i32) (i32.const 0)))

;; An element segment past the end of its table.
(module
  (table 1 1 funcref)
  (elem (i32.const 1) $f)
  (func $f)
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

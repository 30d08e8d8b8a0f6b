;; A data segment at -1.
(module
  (memory (export "memory") 1)
  (data (i32.const -1) "xx")
  (func (export "run") (result i32) (i32.const 0)))

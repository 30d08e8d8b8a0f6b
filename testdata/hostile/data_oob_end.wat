;; A data segment one byte past the end.
(module
  (memory (export "memory") 1)
  (data (i32.const 65535) "xx")
  (func (export "run") (result i32) (i32.const 0)))

;; No memory at all.
(module
  (func (export "run") (result i32) (i32.const 0)))

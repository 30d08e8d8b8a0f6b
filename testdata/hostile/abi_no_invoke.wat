;; The capability's export is not there.
(module
  (memory (export "memory") 1)
  (func (export "walk") (result i32) (i32.const 0)))

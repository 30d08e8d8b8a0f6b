;; An initialiser that never ends.
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (loop $again (br $again)))
  (func (export "run") (result i32) (i32.const 0)))

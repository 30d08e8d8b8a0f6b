;; An initialiser that traps.
(module
  (memory (export "memory") 1)
  (func (export "_initialize") unreachable)
  (func (export "run") (result i32) (i32.const 0)))

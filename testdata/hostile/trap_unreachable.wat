;; Traps at once.
(module
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    unreachable))

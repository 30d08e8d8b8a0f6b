;; Names full of control characters.
(module
  (import "evil\1b[2J\0d\0a" "\00\07\e2\80\ae" (func))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

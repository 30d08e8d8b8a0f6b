;; Imports from a host that is not there.
(module
  (import "evil" "backdoor" (func))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

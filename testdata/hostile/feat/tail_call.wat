;; Calls itself in tail position without end.
;; flags: --enable-tail-call
(module
  (memory (export "memory") 1)
  (func $again (return_call $again))
  (func (export "run") (result i32)
    (call $again)
    (i32.const 0)))

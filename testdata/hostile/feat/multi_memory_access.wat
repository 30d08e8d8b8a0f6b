;; An access to a second memory.
;; flags: --enable-multi-memory
(module
  (memory (export "memory") 1)
  (memory $b 1)
  (func (export "run") (result i32)
    (i32.load $b (i32.const 0))))

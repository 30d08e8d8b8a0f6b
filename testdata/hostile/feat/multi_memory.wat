;; Two memories.
;; flags: --enable-multi-memory
(module
  (memory (export "memory") 1)
  (memory 1)
  (func (export "run") (result i32) (i32.const 0)))

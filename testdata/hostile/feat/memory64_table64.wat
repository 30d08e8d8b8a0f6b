;; A table with 64-bit indices.
;; flags: --enable-memory64
(module
  (memory (export "memory") 1)
  (table i64 1 funcref)
  (func (export "run") (result i32) (i32.const 0)))

;; A memory with 64-bit addresses.
;; flags: --enable-memory64
(module
  (memory (export "memory") i64 1)
  (func (export "run") (result i32) (i32.const 0)))

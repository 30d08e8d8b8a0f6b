;; A memory with pages of one byte.
;; flags: --enable-custom-page-sizes
(module
  (memory (export "memory") 1 (pagesize 1))
  (func (export "run") (result i32) (i32.const 0)))

;; Throws.
;; flags: --enable-exceptions
(module
  (tag $e)
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (throw $e)))

;; The older form of try.
;; flags: --enable-exceptions
(module
  (tag $e)
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (try (result i32) (do (throw $e)) (catch $e (i32.const 0)))))

;; Throws and catches without end.
;; flags: --enable-exceptions
(module
  (tag $e)
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (loop $again
      (block $caught
        (try_table (catch $e $caught) (throw $e)))
      (br $again))
    (i32.const 0)))

;; Calls through a table with the wrong type.
(module
  (type $t (func (result i32)))
  (table 1 1 funcref)
  (elem (i32.const 0) $other)
  (func $other)
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (call_indirect (type $t) (i32.const 0))))

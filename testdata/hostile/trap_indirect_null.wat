;; Calls through an empty table entry.
(module
  (type $t (func (result i32)))
  (table 1 1 funcref)
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (call_indirect (type $t) (i32.const 0))))

;; A loop made of an indirect call to itself through a table, twice a level.
(module
  (type $step (func (param i32)))
  (table 1 1 funcref)
  (elem (i32.const 0) $step)
  (memory (export "memory") 1)
  (func $step (type $step)
    (if (local.get 0)
      (then
        (call_indirect (type $step) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0))
        (call_indirect (type $step) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)))))
  (func (export "run") (result i32)
    (call $step (i32.const 60))
    (i32.const 0)))

;; Exports a global under a name that only the host may add.
(module
  (memory (export "memory") 1)
  (global (export "ecotone_fuel") (mut i64) (i64.const 1000000))
  (func (export "run") (result i32) (i32.const 0)))

;; Calls itself twice, sixty levels deep: no loop, a shallow stack, 2^60 calls.
(module
  (memory (export "memory") 1)
  (func $twice (param $n i32)
    (if (local.get $n)
      (then
        (call $twice (i32.sub (local.get $n) (i32.const 1)))
        (call $twice (i32.sub (local.get $n) (i32.const 1))))))
  (func (export "run") (result i32)
    (call $twice (i32.const 60))
    (i32.const 0)))

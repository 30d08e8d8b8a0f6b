;; Asks for random bytes until it is refused, and says so.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "ecotone_v1" "random" (func $random (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (local $n i32)
    (loop $again
      (if (i64.lt_s (call $random (i32.const 0) (i32.const 65536)) (i64.const 0))
        (then
          (call $answer (i32.const 0))
          (return (i32.const 0))))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
    (call $answer (i32.const 1))
    (i32.const 0)))

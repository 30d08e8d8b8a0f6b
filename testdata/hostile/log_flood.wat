;; Five thousand log lines of 4 KiB.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "ecotone_v1" "log" (func $log (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (local $n i32)
    (memory.fill (i32.const 64) (i32.const 65) (i32.const 4096))
    (loop $again
      (drop (call $log (i32.const 1) (i32.const 64) (i32.const 4096)))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 5000))))
    (call $answer (i32.const 0))
    (i32.const 0)))

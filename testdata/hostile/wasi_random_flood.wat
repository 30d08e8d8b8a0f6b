;; Asks for 64 KiB of random bytes a thousand times.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (local $n i32)
    (loop $again
      (drop (call $random (i32.const 0) (i32.const 65536)))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
    (call $answer (i32.const 1))
    (i32.const 0)))

;; Writes 4 MiB to standard output.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (local $n i32)
    (memory.fill (i32.const 4096) (i32.const 65) (i32.const 4096))
    (i32.store (i32.const 64) (i32.const 4096))
    (i32.store (i32.const 68) (i32.const 4096))
    (loop $again
      (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 72)))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
    (call $answer (i32.const 0))
    (i32.const 0)))

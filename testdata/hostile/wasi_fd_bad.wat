;; Writes to a descriptor that is not there; answers the errno.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (call $answer (call $write (i32.const 3) (i32.const 64) (i32.const 0) (i32.const 72)))
    (i32.const 0)))

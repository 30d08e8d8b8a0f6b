;; One write of 8,192 vectors of the same megabyte.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 32)
  (data (i32.const 0) "{}")
  (func (export "run") (result i32)
    (local $at i32)
    (local.set $at (i32.const 1048576))
    (loop $next
      (i32.store (local.get $at) (i32.const 0))
      (i32.store offset=4 (local.get $at) (i32.const 1048576))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 1114112))))
    (drop (call $write (i32.const 1) (i32.const 1048576) (i32.const 8192) (i32.const 1114116)))
    (drop (call $output (i32.const 0) (i32.const 2)))
    (i32.const 0)))

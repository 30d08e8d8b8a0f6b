;; A number of vectors whose size wraps around.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}")
  (func (export "run") (result i32)
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 0x20000001) (i32.const 72)))
    (drop (call $output (i32.const 0) (i32.const 2)))
    (i32.const 0)))

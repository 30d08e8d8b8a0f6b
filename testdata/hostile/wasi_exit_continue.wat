;; Goes on after the host said that the process ended.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}")
  (func (export "run") (result i32)
    (call $exit (i32.const 1))
    (drop (call $output (i32.const 0) (i32.const 2)))
    (i32.const 0)))

;; Ends the process instead of returning.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (call $exit (i32.const 3))
    (i32.const 0)))

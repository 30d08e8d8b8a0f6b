;; Imports a WASI function with a type of its own.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

;; The snapshot before preview 1.
(module
  (import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

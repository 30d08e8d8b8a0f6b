;; Starts threads.
(module
  (import "wasi" "thread-spawn" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

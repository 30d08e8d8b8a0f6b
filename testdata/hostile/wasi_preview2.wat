;; The interface of components in a core module.
(module
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.read" (func (param i32 i64 i64 i32)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

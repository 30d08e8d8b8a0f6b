;; Fails with a code of its own.
(module
  (import "ecotone_v1" "error" (func $error (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "NOPEno way\0d\0aX-Evil: 1")
  (func (export "run") (result i32)
    (drop (call $error (i32.const 0) (i32.const 4) (i32.const 4) (i32.const 17)))
    (i32.const 1)))

;; A start section that calls the host before there is an invocation.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}")
  (func $start (drop (call $output (i32.const 0) (i32.const 2))))
  (start $start)
  (func (export "run") (result i32) (i32.const 0)))

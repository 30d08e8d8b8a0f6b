;; One log line with everything that breaks logs: line ends, escapes, direction marks, NUL, half a character.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "ecotone_v1" "log" (func $log (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}")
  (data (i32.const 64) "a\0d\0ab\1b[2J\00\22}{\e2\80\ae\ff\c3")
  (func (export "run") (result i32)
    (drop (call $log (i32.const 3) (i32.const 64) (i32.const 18)))
    (drop (call $output (i32.const 0) (i32.const 2)))
    (i32.const 0)))

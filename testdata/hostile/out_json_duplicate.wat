;; An object with the same key twice.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\22a\22:1,\22a\22:2}")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 13)))
    (i32.const 0)))

;; Has its input written past the end of memory. Answers the errno as a digit.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "ecotone_v1" "input" (func $input (result i64)))
  (import "ecotone_v1" "result_read" (func $read (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (call $answer (i32.sub (i32.const 0) (i32.wrap_i64 (block (result i64) (drop (call $input)) (call $read (i32.const 65535) (i32.const 0) (i32.const 64))))))
    (i32.const 0)))

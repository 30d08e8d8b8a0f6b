;; Grows its memory between two host calls and uses the new page.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "ecotone_v1" "input" (func $input (result i64)))
  (import "ecotone_v1" "result_read" (func $read (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (drop (call $input))
    (drop (memory.grow (i32.const 1)))
    (drop (call $output (i32.const 65536) (i32.wrap_i64 (call $read (i32.const 65536) (i32.const 0) (i32.const 65536)))))
    (i32.const 0)))

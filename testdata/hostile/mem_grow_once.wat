;; Asks for two gigabytes in one piece; answers 0 when refused.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (call $answer (i32.ne (memory.grow (i32.const 32768)) (i32.const -1)))
    (i32.const 0)))

;; The bits of a NaN, apart from sign and payload; answers 1.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (global $zero (mut f32) (f32.const 0))
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (call $answer (i32.eq (i32.const 0x7fc00000)
      (i32.and (i32.const 0x7fc00000) (i32.reinterpret_f32 (f32.div (global.get $zero) (global.get $zero))))))
    (i32.const 0)))

;; Text that would be headers if anything copied it there.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\0d\0a\0d\0a{\22x\22:\22\5cr\5cnSet-Cookie: a=b\5cr\5cn\22}")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 35)))
    (i32.const 0)))

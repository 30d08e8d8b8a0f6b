;; Text that would be a script if anything showed it as a page.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\22</script><script>alert(1)</script>\22")
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 36)))
    (i32.const 0)))

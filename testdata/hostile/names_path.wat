;; Exports with names that would be paths, statements and markup if anything used them so.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}")
  (func (export "../../../../etc/passwd"))
  (func (export "C:\\Windows\\System32\\cmd.exe"))
  (func (export "'; DROP TABLE biomes; --"))
  (func (export "<script>alert(1)</script>"))
  (func (export "\e2\80\aenur"))
  (func (export ""))
  (func (export "run") (result i32)
    (drop (call $output (i32.const 0) (i32.const 2)))
    (i32.const 0)))

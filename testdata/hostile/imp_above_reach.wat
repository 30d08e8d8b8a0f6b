;; Declares owner and imports the network.
(module
  (import "ecotone_v1" "http_fetch" (func (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32) (i32.const 0)))

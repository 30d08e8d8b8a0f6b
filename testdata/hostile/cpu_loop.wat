;; Never ends, in one loop.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (loop $again (br $again))
    (i32.const 0)))

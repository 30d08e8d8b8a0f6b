;; A start section that never ends.
(module
  (memory (export "memory") 1)
  (func $start (loop $again (br $again)))
  (start $start)
  (func (export "run") (result i32) (i32.const 0)))

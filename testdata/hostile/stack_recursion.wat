;; Calls itself without end.
(module
  (memory (export "memory") 1)
  (func $deeper (result i32) (i32.add (call $deeper) (i32.const 1)))
  (func (export "run") (result i32)
    (drop (call $deeper))
    (i32.const 0)))

;; Reads past the end of its memory.
(module
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (i32.load (i32.const 65533))))

;; Exports _start as a program does, and no start section.
(module
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "run") (result i32) (i32.const 0)))

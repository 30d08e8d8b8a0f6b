;; Spends its time inside memory.fill, where no loop header is.
(module
  (memory (export "memory") 256)
  (func (export "run") (result i32)
    (loop $again
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 16777216))
      (br $again))
    (i32.const 0)))

;; The capability is a global.
(module
  (memory (export "memory") 1)
  (global (export "run") i32 (i32.const 0)))

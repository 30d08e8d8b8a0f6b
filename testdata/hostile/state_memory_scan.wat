;; Looks for bytes that are not zero in 4 MiB of new memory, then leaves some; answers 0 when there were none.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (local $at i32) (local $found i64)
    (drop (memory.grow (i32.const 64)))
    (local.set $at (i32.const 65536))
    (loop $next
      (local.set $found (i64.or (local.get $found) (i64.load (local.get $at))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 4259840))))
    (memory.fill (i32.const 65536) (i32.const 0xaa) (i32.const 4194304))
    (call $answer (i64.ne (local.get $found) (i64.const 0)))
    (i32.const 0)))

;; Grows a table that declares no maximum by a million entries; answers 0 when refused.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (table 1 funcref)
  (memory (export "memory") 1)
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (local $n i32)
    (loop $more
      (if (i32.eq (table.grow (ref.null func) (i32.const 1000)) (i32.const -1))
        (then
          (call $answer (i32.const 0))
          (return (i32.const 0))))
      (br_if $more (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
    (call $answer (i32.const 1))
    (i32.const 0)))

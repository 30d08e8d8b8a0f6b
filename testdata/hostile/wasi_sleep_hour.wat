;; Sleeps for an hour.
(module
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; A subscription: user data, kind 0 (clock), clock 1 (monotonic), 3,600 s in nanoseconds.
  (data (i32.const 80) "\01\00\00\00")
  (data (i32.const 88) "\00\a0\b8\30\46\03\00\00")
  (func $answer (param $digit i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $output (i32.const 0) (i32.const 1))))
  (func (export "run") (result i32)
    (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))
    (call $answer (i32.const 0))
    (i32.const 0)))

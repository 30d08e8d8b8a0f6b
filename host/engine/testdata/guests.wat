;; Guests of the engine's tests, one capability each. Assembled with wat2wasm of wabt 1.0.39:
;;   wat2wasm guests.wat -o guests.wasm
(module
  (import "ecotone_v1" "input" (func $input (result i64)))
  (import "ecotone_v1" "result_read" (func $result_read (param i32 i32 i32) (result i64)))
  (import "ecotone_v1" "output" (func $output (param i32 i32) (result i64)))
  (import "ecotone_v1" "error" (func $error (param i32 i32 i32 i32) (result i64)))
  (import "ecotone_v1" "log" (func $log (param i32 i32 i32) (result i64)))
  (import "ecotone_v1" "random" (func $random (param i32 i32) (result i64)))
  (import "ecotone_v1" "http_fetch" (func $http_fetch (param i32 i32 i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))

  (memory (export "memory") 1 65536) ;; a maximum far above any limit
  (table $table 2 10 funcref)
  (global $count (mut i32) (i32.const 0))
  (elem $declared declare func $nothing)
  (data (i32.const 64) "{\22method\22:\22GET\22,\22url\22:\22https://api.example/\22}")
  (data (i32.const 128) "MY_CODEit broke")
  (data $passive "7")

  (func $nothing)

  ;; number outputs v in decimal.
  (func $number (param $v i32) (result i32)
    (local $at i32)
    (local.set $at (i32.const 1024))
    (loop $digits
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $v) (i32.const 10))))
      (local.set $v (i32.div_u (local.get $v) (i32.const 10)))
      (br_if $digits (local.get $v)))
    (i32.wrap_i64 (call $output (local.get $at) (i32.sub (i32.const 1024) (local.get $at)))))

  ;; text outputs a string of memory.
  (func $text (param $ptr i32) (param $len i32) (result i32)
    (i32.wrap_i64 (call $output (local.get $ptr) (local.get $len))))

  (func (export "echo") (result i32)
    (drop (call $input))
    (call $text (i32.const 2048)
      (i32.wrap_i64 (call $result_read (i32.const 2048) (i32.const 0) (i32.const 4096)))))

  ;; CPU and stack.
  (func (export "loop") (result i32) (loop (br 0)) (unreachable))
  (func $deep (export "recurse") (result i32) (i32.add (call $deep) (i32.const 1)))

  ;; Traps.
  (func (export "trap") (result i32) (unreachable))
  (func (export "out_of_bounds") (result i32) (i32.load (i32.const 0x7ffffff0)))
  (func (export "divide") (result i32) (i32.div_u (i32.const 1) (global.get $count)))
  (func (export "null_call") (result i32) (call_indirect (i32.const 0)) (i32.const 0))

  ;; Ends without an answer.
  (func (export "silent") (result i32) (i32.const 0))
  (func (export "status") (result i32) (drop (call $number (i32.const 1))) (i32.const 7))
  (func (export "fail") (result i32)
    (i32.wrap_i64 (call $error (i32.const 128) (i32.const 7) (i32.const 135) (i32.const 8))))
  (func (export "exit_3") (result i32)
    (drop (call $number (i32.const 1)))
    (call $proc_exit (i32.const 3))
    (unreachable))
  (func (export "exit_0") (result i32)
    (drop (call $number (i32.const 1)))
    (call $proc_exit (i32.const 0))
    (unreachable))

  ;; Memory.
  (func (export "grow_bomb") (result i32)
    (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (call $number (memory.size)))
  (func (export "grow_once") (result i32)
    (call $number (i32.eq (memory.grow (i32.const 60000)) (i32.const -1))))
  (func (export "table_bomb") (result i32)
    (call $number (i32.eq (table.grow $table (ref.null func) (i32.const 100000)) (i32.const -1))))

  ;; State: each answers the same in every invocation.
  (func (export "state_global") (result i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (call $number (global.get $count)))
  ;; counts bytes that are not zero past the first KiB, then dirties and grows.
  (func (export "state_memory") (result i32)
    (local $at i32) (local $found i32)
    (local.set $at (i32.const 1024))
    (loop $scan
      (local.set $found (i32.add (local.get $found) (i32.ne (i32.load8_u (local.get $at)) (i32.const 0))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $scan (i32.lt_u (local.get $at) (i32.const 65536))))
    (memory.fill (i32.const 1024) (i32.const 0xAA) (i32.const 64512))
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1))
      (then (memory.fill (i32.const 65536) (i32.const 0xBB) (i32.const 65536))))
    (call $number (local.get $found)))
  (func (export "state_size") (result i32)
    (drop (memory.grow (i32.const 1)))
    (call $number (memory.size)))
  (func (export "state_table") (result i32)
    (local $empty i32)
    (local.set $empty (ref.is_null (table.get $table (i32.const 1))))
    (table.set $table (i32.const 1) (ref.func $nothing))
    (call $number (local.get $empty)))
  (func (export "state_passive") (result i32)
    (memory.init $passive (i32.const 512) (i32.const 0) (i32.const 1))
    (data.drop $passive)
    (call $text (i32.const 512) (i32.const 1)))

  ;; Host calls.
  (func (export "fetch_then_answer") (result i32)
    (drop (call $http_fetch (i32.const 64) (i32.const 45) (i32.const 0) (i32.const 0)))
    (memory.fill (i32.const 2048) (i32.const 0xCC) (i32.const 4096))
    (call $number (i32.const 1)))
  (func (export "fetch_errno") (result i32)
    (call $number (i32.sub (i32.const 0) (i32.wrap_i64 (call $http_fetch (i32.const 64) (i32.const 45) (i32.const 0) (i32.const 0))))))
  (func (export "call_flood") (result i32)
    (loop (drop (call $log (i32.const 1) (i32.const 128) (i32.const 7))) (br 0))
    (unreachable))
  (func (export "bad_pointer") (result i32)
    (call $number (i32.sub (i32.const 0) (i32.wrap_i64 (call $output (i32.const 0) (i32.const -1))))))
  (func (export "random") (result i32)
    (drop (call $random (i32.const 512) (i32.const 4)))
    (call $number (i32.load (i32.const 512))))

  ;; WASI.
  (func (export "sleep_hour") (result i32)
    (i64.store (i32.const 2072) (i64.const 3600000000000))
    (drop (call $poll_oneoff (i32.const 2048) (i32.const 3072) (i32.const 1) (i32.const 4096)))
    (call $number (i32.const 1)))
  (func (export "wasi_random_flood") (result i32)
    (loop (drop (call $random_get (i32.const 2048) (i32.const 4096))) (br 0))
    (unreachable))
  (func (export "wasi_write_flood") (result i32)
    (i32.store (i32.const 2048) (i32.const 128))
    (i32.store (i32.const 2052) (i32.const 15))
    (loop (drop (call $fd_write (i32.const 1) (i32.const 2048) (i32.const 1) (i32.const 4096))) (br 0))
    (unreachable))
  (func (export "prestat") (result i32) (call $number (call $fd_prestat_get (i32.const 3) (i32.const 2048)))))

;; A vector instruction whose answer depends on the processor.
;; flags: --enable-relaxed-simd
(module
  (memory (export "memory") 1)
  (func (export "run") (result i32)
    (i32x4.extract_lane 0 (i8x16.relaxed_swizzle (v128.const i32x4 0 0 0 0) (v128.const i32x4 0 0 0 0)))))

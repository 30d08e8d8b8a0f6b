package main

// What the SDK keeps to itself: the result register, and calls it would not make.

//go:wasmimport ecotone_v1 result_read
func resultRead(to *byte, off, n uint32) int64

//go:wasmimport ecotone_v1 result_meta
func resultMeta(to *byte, off, n uint32) int64

//go:wasmimport ecotone_v1 log
func rawLog(level int32, message string) int64

//go:wasmimport ecotone_v1 error
func rawError(code, message string) int64

//go:wasmimport ecotone_v1 http_fetch
func rawFetch(request, body string) int64

//go:wasmimport ecotone_v1 audit_query
func rawQuery(query string) int64

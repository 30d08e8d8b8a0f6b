package main

//go:wasmimport ecotone_v1 input
func input() int64

//go:wasmimport ecotone_v1 result_read
func resultRead(ptr *byte, off, n uint32) int64

//go:wasmimport ecotone_v1 result_meta
func resultMeta(ptr *byte, off, n uint32) int64

//go:wasmimport ecotone_v1 output
func output(data string) int64

//go:wasmimport ecotone_v1 error
func hostError(code, message string) int64

//go:wasmimport ecotone_v1 log
func hostLog(level uint32, message string) int64

//go:wasmimport ecotone_v1 time_now
func timeNow() int64

//go:wasmimport ecotone_v1 random
func random(ptr *byte, n uint32) int64

//go:wasmimport ecotone_v1 kv_get
func kvGet(key string) int64

//go:wasmimport ecotone_v1 kv_put
func kvPut(key, value string) int64

//go:wasmimport ecotone_v1 kv_delete
func kvDelete(key string) int64

//go:wasmimport ecotone_v1 kv_list
func kvList(prefix, after string, limit uint32) int64

//go:wasmimport ecotone_v1 file_stat
func fileStat(path string) int64

//go:wasmimport ecotone_v1 file_read
func fileRead(path string, off int64, n uint32) int64

//go:wasmimport ecotone_v1 file_list
func fileList(path, after string, limit uint32) int64

//go:wasmimport ecotone_v1 file_create
func fileCreate(path, data string) int64

//go:wasmimport ecotone_v1 file_write
func fileWrite(path, data string) int64

//go:wasmimport ecotone_v1 file_replace
func fileReplace(path, version, data string) int64

//go:wasmimport ecotone_v1 file_edit
func fileEdit(path, old, new string, all uint32) int64

//go:wasmimport ecotone_v1 file_copy
func fileCopy(from, to string) int64

//go:wasmimport ecotone_v1 file_move
func fileMove(from, to string) int64

//go:wasmimport ecotone_v1 file_remove
func fileRemove(path string) int64

//go:wasmimport ecotone_v1 file_mkdir
func fileMkdir(path string) int64

//go:wasmimport ecotone_v1 file_grep
func fileGrep(pattern, glob string, limit uint32) int64

//go:wasmimport ecotone_v1 file_glob
func fileGlob(glob string, limit uint32) int64

//go:wasmimport ecotone_v1 capability_invoke
func capabilityInvoke(ref, input string) int64

//go:wasmimport ecotone_v1 http_fetch
func httpFetch(request, body string) int64

//go:wasmimport ecotone_v1 secret_hmac
func secretHMAC(name, message string) int64

//go:wasmimport ecotone_v1 audit_query
func auditQuery(query string) int64

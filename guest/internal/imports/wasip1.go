//go:build wasip1

package imports

// at is the address of b's bytes; an empty slice has none, and its length says so.
func at(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

func size(b []byte) uint32 { return uint32(len(b)) }

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

//go:wasmimport ecotone_v1 input
func hostInput() int64

func Input() int64 { return hostInput() }

//go:wasmimport ecotone_v1 result_read
func hostResultRead(dst *byte, off uint32, dstLen uint32) int64

func ResultRead(dst []byte, off int) int64 { return hostResultRead(at(dst), uint32(off), size(dst)) }

//go:wasmimport ecotone_v1 result_meta
func hostResultMeta(dst *byte, off uint32, dstLen uint32) int64

func ResultMeta(dst []byte, off int) int64 { return hostResultMeta(at(dst), uint32(off), size(dst)) }

//go:wasmimport ecotone_v1 output
func hostOutput(data *byte, dataLen uint32) int64

func Output(data []byte) int64 { return hostOutput(at(data), size(data)) }

//go:wasmimport ecotone_v1 error
func hostError(code string, message string) int64

func Error(code, message string) int64 { return hostError(code, message) }

//go:wasmimport ecotone_v1 log
func hostLog(level int32, message string) int64

func Log(level int32, message string) int64 { return hostLog(level, message) }

//go:wasmimport ecotone_v1 time_now
func hostTimeNow() int64

func TimeNow() int64 { return hostTimeNow() }

//go:wasmimport ecotone_v1 random
func hostRandom(dst *byte, dstLen uint32) int64

func Random(dst []byte) int64 { return hostRandom(at(dst), size(dst)) }

//go:wasmimport ecotone_v1 kv_get
func hostKVGet(key string) int64

func KVGet(key string) int64 { return hostKVGet(key) }

//go:wasmimport ecotone_v1 kv_put
func hostKVPut(key string, value *byte, valueLen uint32) int64

func KVPut(key string, value []byte) int64 { return hostKVPut(key, at(value), size(value)) }

//go:wasmimport ecotone_v1 kv_delete
func hostKVDelete(key string) int64

func KVDelete(key string) int64 { return hostKVDelete(key) }

//go:wasmimport ecotone_v1 kv_list
func hostKVList(prefix string, after string, limit uint32) int64

func KVList(prefix, after string, limit int) int64 { return hostKVList(prefix, after, uint32(limit)) }

//go:wasmimport ecotone_v1 file_stat
func hostFileStat(path string) int64

func FileStat(path string) int64 { return hostFileStat(path) }

//go:wasmimport ecotone_v1 file_read
func hostFileRead(path string, off int64, n uint32) int64

func FileRead(path string, off int64, n int) int64 { return hostFileRead(path, off, uint32(n)) }

//go:wasmimport ecotone_v1 file_list
func hostFileList(path string, after string, limit uint32) int64

func FileList(path, after string, limit int) int64 { return hostFileList(path, after, uint32(limit)) }

//go:wasmimport ecotone_v1 file_create
func hostFileCreate(path string, data *byte, dataLen uint32) int64

func FileCreate(path string, data []byte) int64 { return hostFileCreate(path, at(data), size(data)) }

//go:wasmimport ecotone_v1 file_write
func hostFileWrite(path string, data *byte, dataLen uint32) int64

func FileWrite(path string, data []byte) int64 { return hostFileWrite(path, at(data), size(data)) }

//go:wasmimport ecotone_v1 file_replace
func hostFileReplace(path string, version string, data *byte, dataLen uint32) int64

func FileReplace(path, version string, data []byte) int64 {
	return hostFileReplace(path, version, at(data), size(data))
}

//go:wasmimport ecotone_v1 file_edit
func hostFileEdit(path string, old string, new string, all uint32) int64

func FileEdit(path, old, new string, all bool) int64 { return hostFileEdit(path, old, new, flag(all)) }

//go:wasmimport ecotone_v1 file_copy
func hostFileCopy(from string, to string) int64

func FileCopy(from, to string) int64 { return hostFileCopy(from, to) }

//go:wasmimport ecotone_v1 file_move
func hostFileMove(from string, to string) int64

func FileMove(from, to string) int64 { return hostFileMove(from, to) }

//go:wasmimport ecotone_v1 file_remove
func hostFileRemove(path string) int64

func FileRemove(path string) int64 { return hostFileRemove(path) }

//go:wasmimport ecotone_v1 file_mkdir
func hostFileMkdir(path string) int64

func FileMkdir(path string) int64 { return hostFileMkdir(path) }

//go:wasmimport ecotone_v1 file_grep
func hostFileGrep(pattern string, glob string, limit uint32) int64

func FileGrep(pattern, glob string, limit int) int64 {
	return hostFileGrep(pattern, glob, uint32(limit))
}

//go:wasmimport ecotone_v1 file_glob
func hostFileGlob(glob string, limit uint32) int64

func FileGlob(glob string, limit int) int64 { return hostFileGlob(glob, uint32(limit)) }

//go:wasmimport ecotone_v1 capability_invoke
func hostCapabilityInvoke(ref string, input *byte, inputLen uint32) int64

func CapabilityInvoke(ref string, input []byte) int64 {
	return hostCapabilityInvoke(ref, at(input), size(input))
}

//go:wasmimport ecotone_v1 http_fetch
func hostHTTPFetch(request *byte, requestLen uint32, body *byte, bodyLen uint32) int64

func HTTPFetch(request, body []byte) int64 {
	return hostHTTPFetch(at(request), size(request), at(body), size(body))
}

//go:wasmimport ecotone_v1 secret_hmac
func hostSecretHMAC(name string, message *byte, messageLen uint32) int64

func SecretHMAC(name string, message []byte) int64 {
	return hostSecretHMAC(name, at(message), size(message))
}

//go:wasmimport ecotone_v1 audit_query
func hostAuditQuery(query *byte, queryLen uint32) int64

func AuditQuery(query []byte) int64 { return hostAuditQuery(at(query), size(query)) }

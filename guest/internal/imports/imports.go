// Package imports is where the SDK ends and the host begins: one Go function for each row of
// the host-function table, and nothing else.
//
// In a module (GOOS=wasip1) each is the import itself. Elsewhere each asks the [Host] that a
// test has put in, so that a biome's logic is tested without WebAssembly. Results are the
// host's own: zero or more is a length or a value, less than zero a negated error number.
// Nothing here needs package unsafe: the compiler passes a string as the pointer and length
// the ABI wants, and a pointer to a byte as the address it has.
package imports

// Host is what the SDK needs of a host, method by method the host-function table.
type Host interface {
	Input() int64
	ResultRead(dst []byte, off int) int64
	ResultMeta(dst []byte, off int) int64
	Output(data []byte) int64
	Error(code, message string) int64
	Log(level int32, message string) int64
	TimeNow() int64
	Random(dst []byte) int64
	KVGet(key string) int64
	KVPut(key string, value []byte) int64
	KVDelete(key string) int64
	KVList(prefix, after string, limit int) int64
	FileStat(path string) int64
	FileRead(path string, off int64, n int) int64
	FileList(path, after string, limit int) int64
	FileCreate(path string, data []byte) int64
	FileWrite(path string, data []byte) int64
	FileReplace(path, version string, data []byte) int64
	FileEdit(path, old, new string, all bool) int64
	FileCopy(from, to string) int64
	FileMove(from, to string) int64
	FileRemove(path string) int64
	FileMkdir(path string) int64
	FileGrep(pattern, glob string, limit int) int64
	FileGlob(glob string, limit int) int64
	CapabilityInvoke(ref string, input []byte) int64
	HTTPFetch(request, body []byte) int64
	SecretHMAC(name string, message []byte) int64
	AuditQuery(query []byte) int64
}

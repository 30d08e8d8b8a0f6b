//go:build !wasip1

package imports

import "sync"

var (
	mu      sync.RWMutex
	current Host
)

// Use makes h the host of this process until done is called. It reports false, and does
// nothing, while another host is in use.
func Use(h Host) (done func(), ok bool) {
	mu.Lock()
	defer mu.Unlock()
	if current != nil {
		return nil, false
	}
	current = h
	return func() {
		mu.Lock()
		defer mu.Unlock()
		current = nil
	}, true
}

func host() Host {
	mu.RLock()
	defer mu.RUnlock()
	if current == nil {
		panic("guest: there is no host outside a module; a test begins with guesttest.New")
	}
	return current
}

func Input() int64                                 { return host().Input() }
func ResultRead(dst []byte, off int) int64         { return host().ResultRead(dst, off) }
func ResultMeta(dst []byte, off int) int64         { return host().ResultMeta(dst, off) }
func Output(data []byte) int64                     { return host().Output(data) }
func Error(code, message string) int64             { return host().Error(code, message) }
func Log(level int32, message string) int64        { return host().Log(level, message) }
func TimeNow() int64                               { return host().TimeNow() }
func Random(dst []byte) int64                      { return host().Random(dst) }
func KVGet(key string) int64                       { return host().KVGet(key) }
func KVPut(key string, value []byte) int64         { return host().KVPut(key, value) }
func KVDelete(key string) int64                    { return host().KVDelete(key) }
func KVList(prefix, after string, limit int) int64 { return host().KVList(prefix, after, limit) }
func FileStat(path string) int64                   { return host().FileStat(path) }
func FileRead(path string, off int64, n int) int64 { return host().FileRead(path, off, n) }
func FileList(path, after string, limit int) int64 { return host().FileList(path, after, limit) }
func FileCreate(path string, data []byte) int64    { return host().FileCreate(path, data) }
func FileWrite(path string, data []byte) int64     { return host().FileWrite(path, data) }
func FileReplace(path, version string, data []byte) int64 {
	return host().FileReplace(path, version, data)
}

func FileEdit(path, old, new string, all bool) int64  { return host().FileEdit(path, old, new, all) }
func FileCopy(from, to string) int64                  { return host().FileCopy(from, to) }
func FileMove(from, to string) int64                  { return host().FileMove(from, to) }
func FileRemove(path string) int64                    { return host().FileRemove(path) }
func FileMkdir(path string) int64                     { return host().FileMkdir(path) }
func FileGrep(pattern, glob string, limit int) int64  { return host().FileGrep(pattern, glob, limit) }
func FileGlob(glob string, limit int) int64           { return host().FileGlob(glob, limit) }
func CapabilityInvoke(ref string, input []byte) int64 { return host().CapabilityInvoke(ref, input) }
func HTTPFetch(request, body []byte) int64            { return host().HTTPFetch(request, body) }
func SecretHMAC(name string, message []byte) int64    { return host().SecretHMAC(name, message) }
func AuditQuery(query []byte) int64                   { return host().AuditQuery(query) }

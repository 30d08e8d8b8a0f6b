// Command probe tries every door there is and tells what was behind it: arguments,
// environment, each function of the WASI subset, each host function, and whether bytes that
// must not be there are in its memory. It declares its imports itself and does not use the
// SDK's.
package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"

	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/testdata/guests/internal/scan"
)

func main() {}

// The same probe for each reach, so that one module shows what each declaration is given.

//go:wasmexport owner
func owner() int32 { return guest.Handle(probe) }

//go:wasmexport integration
func integration() int32 { return guest.Handle(probe) }

//go:wasmexport platform
func platform() int32 { return guest.Handle(probe) }

type in struct {
	Masked []string `json:"masked"` // see package scan
	Path   string   `json:"path"`   // of a file to make; empty: probe.txt
	Key    string   `json:"key"`    // empty: probe
	Ref    string   `json:"ref"`    // to invoke; empty: notes:note.list@1
	URL    string   `json:"url"`    // to fetch; empty: https://origin.example/
	Secret string   `json:"secret"` // to fetch and sign with; empty: token
}

type out struct {
	Args        []string          `json:"args"`
	Environ     []string          `json:"environ"`
	WASI        map[string]int32  `json:"wasi"` // what each function of the subset answered
	Host        map[string]answer `json:"host"` // what each host function answered
	Found       []int             `json:"found"`
	MemoryBytes int64             `json:"memoryBytes"`
}

// answer is what one host function answered.
type answer struct {
	Value int64  `json:"value"`
	Errno string `json:"errno,omitempty"`
	Body  string `json:"body,omitempty"` // of the result register, base64, at most 4 KiB
	Meta  string `json:"meta,omitempty"`
}

func probe(req in) (out, error) {
	fill := func(s *string, fallback string) {
		if *s == "" {
			*s = fallback
		}
	}
	fill(&req.Path, "probe.txt")
	fill(&req.Key, "probe")
	fill(&req.Ref, "notes:note.list@1")
	fill(&req.URL, "https://origin.example/")
	fill(&req.Secret, "token")

	o := out{Args: append([]string{}, os.Args...), Environ: append([]string{}, os.Environ()...), WASI: wasi()}
	o.Host = host(req)
	// Last, so that everything a call may have brought in is there to be found.
	o.Found, o.MemoryBytes = scan.Find(req.Masked), scan.Size()
	return o, nil
}

// host calls every host function once, in an order in which each can succeed.
func host(req in) map[string]answer {
	got := map[string]answer{}
	note := func(name string, value int64) answer {
		a := answer{Value: value}
		if value < 0 {
			a.Errno = guest.Errno(-value).String()
		}
		got[name] = a
		return a
	}
	full := func(name string, value int64) answer {
		a := note(name, value)
		if value < 0 {
			return a // what is in the register then is the call's before
		}
		a.Body, a.Meta = base64.StdEncoding.EncodeToString(register(resultRead)), string(register(resultMeta))
		got[name] = a
		return a
	}
	document, _ := json.Marshal(map[string]string{"method": "GET", "url": req.URL, "secret": req.Secret})

	full("input", input())
	note("log", hostLog(1, "probe"))
	note("time_now", timeNow())
	buf := make([]byte, 16)
	note("random", random(&buf[0], uint32(len(buf))))
	note("kv_put", kvPut(req.Key, "value"))
	full("kv_get", kvGet(req.Key))
	full("kv_list", kvList("", "", 10))
	note("kv_delete", kvDelete(req.Key))
	created := full("file_create", fileCreate(req.Path, "one"))
	full("file_stat", fileStat(req.Path))
	full("file_read", fileRead(req.Path, 0, 100))
	full("file_write", fileWrite(req.Path, "two"))
	written := got["file_write"]
	if written.Value < 0 {
		written = created
	}
	full("file_replace", fileReplace(req.Path, version(written.Meta), "three"))
	full("file_edit", fileEdit(req.Path, "three", "four", 0))
	note("file_copy", fileCopy(req.Path, req.Path+".copy"))
	note("file_move", fileMove(req.Path+".copy", req.Path+".moved"))
	full("file_list", fileList(".", "", 10))
	full("file_grep", fileGrep("f..r", "**", 10))
	full("file_glob", fileGlob("**", 10))
	note("file_remove", fileRemove(req.Path+".moved"))
	fileRemove(req.Path)
	note("file_mkdir", fileMkdir(req.Path))
	fileRemove(req.Path)
	full("capability_invoke", capabilityInvoke(req.Ref, "{}"))
	full("http_fetch", httpFetch(string(document), ""))
	full("secret_hmac", secretHMAC(req.Secret, "message"))
	full("audit_query", auditQuery("{}"))

	// The functions of the answer itself; what they say here is replaced by the real one.
	note("result_read", resultRead(&buf[0], 0, 1))
	note("result_meta", resultMeta(&buf[0], 0, 1))
	note("output", output("{}"))
	note("error", hostError("not a code", "")) // EINVAL: a code would fail the invocation
	return got
}

// register reads at most 4 KiB of the result register.
func register(read func(*byte, uint32, uint32) int64) []byte {
	buf := make([]byte, 4<<10)
	n := read(&buf[0], 0, uint32(len(buf)))
	return buf[:max(n, 0)]
}

func version(meta string) string {
	var m struct {
		Version string `json:"version"`
	}
	if json.NewDecoder(strings.NewReader(meta)).Decode(&m) != nil {
		return ""
	}
	return m.Version
}

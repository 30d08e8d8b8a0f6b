package servertest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// act is one host call of a scripted guest: the function's name and its arguments, strings for
// (pointer, length) pairs and numbers for the rest. Four are the guest's own doing: spin never
// ends, trap traps, recurse calls itself as often as its number says, and answer makes the result register's body the output.
type act []any

// scripts are capabilities, by the name of their export. Unless a script says otherwise its
// output is the list of the error numbers its calls ended with, 0 for a call that went well.
type scripts map[string][]act

// Memory of a scripted guest.
const (
	outputAt = 16 // the list of error numbers
	resultAt = 4096
	room     = 32 << 10 // of the result that answer passes on
	dataAt   = resultAt + room
)

// scripted assembles a guest of scripts. Its capabilities are test:<biome>.<export>@1.
func scripted(m *abi.Manifest, all scripts) []byte {
	b := w.New()
	functions := map[string]uint32{}
	use := func(name string) {
		if _, known := functions[name]; !known {
			functions[name] = b.Host(name)
		}
	}
	use("output")
	use("result_read")
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		for _, s := range all[name] {
			if _, isCall := abi.FunctionByName(s[0].(string)); isCall {
				use(s[0].(string))
			}
		}
	}
	cursor := b.Global(w.I32, true, w.I32Const(outputAt+1))
	digit := func(op byte) []byte {
		return w.Cat(w.LocalGet(1), w.I32Const(10), w.Op(op), w.I32Const('0'), w.Op(w.OpI32Add))
	}
	at := w.GlobalGet(cursor)
	emit := b.Func(w.Types(w.I64), nil, w.Types(w.I32),
		w.LocalGet(0), w.I64Const(0), w.Op(0x53), // negative?
		w.If(w.I32Const(0), w.LocalGet(0), w.Op(w.OpI32WrapI64, w.OpI32Sub), w.LocalSet(1)),
		at, w.I32Const(' '), w.Store8(0),
		w.LocalGet(1), w.I32Const(9), w.Op(0x4b), // more than one digit?
		w.If(at, digit(0x6e), w.Store8(0)),
		at, digit(0x70), w.Store8(1),
		at, w.I32Const(','), w.Store8(2),
		at, w.I32Const(3), w.Op(w.OpI32Add), w.GlobalSet(cursor),
	)
	deep := emit + 1
	b.Func(w.Types(w.I32), nil, nil, w.LocalGet(0), w.If(w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Call(deep)))
	var data []byte
	place := func(s string) []byte {
		p := w.Cat(w.I32Const(dataAt+int32(len(data))), w.I32Const(int32(len(s))))
		data = append(data, s...)
		return p
	}
	for _, name := range names {
		m.Provides = append(m.Provides, w.Provide("test:"+m.Name+"."+name+"@1", name, reachOf(all[name])))
		var body []byte
		answered := false
		for _, s := range all[name] {
			switch f := s[0].(string); f {
			case "spin":
				body = append(body, w.Loop(w.Br(0))...)
			case "recurse":
				body = append(body, w.Cat(w.I32Const(int32(s[1].(int))), w.Call(deep), w.I64Const(0), w.Call(emit))...)
			case "trap":
				body = append(body, w.Op(w.OpUnreachable)...)
			case "answer":
				answered = true
				body = append(body, w.Cat(
					w.I32Const(resultAt), w.I32Const(resultAt), w.I32Const(0), w.I32Const(room), w.Call(functions["result_read"]), w.Op(w.OpI32WrapI64),
					w.Call(functions["output"]), w.Call(emit))...)
			default:
				info, _ := abi.FunctionByName(f)
				p := 0
				for _, arg := range s[1:] {
					switch arg := arg.(type) {
					case string:
						body = append(body, place(arg)...)
						p += 2
					case int:
						if info.Params[p].Type == abi.I64 {
							body = append(body, w.I64Const(int64(arg))...)
						} else {
							body = append(body, w.I32Const(int32(arg))...)
						}
						p++
					}
				}
				body = append(body, w.Cat(w.Call(functions[f]), w.Call(emit))...)
			}
		}
		if !answered {
			body = append(body, w.Cat(
				at, w.I32Const(1), w.Op(w.OpI32Sub), w.I32Const(']'), w.Store8(0),
				w.I32Const(outputAt), at, w.I32Const(outputAt), w.Op(w.OpI32Sub), w.Call(functions["output"]), w.Op(w.OpDrop))...)
		}
		b.Capability(name, body, w.I32Const(0))
	}
	pages := uint32(dataAt+len(data))>>16 + 1
	return b.Memory(pages).ExportMemory().Data(outputAt, []byte("[")).Data(dataAt, data).Manifest(m).Bytes()
}

// reachOf is the highest reach of the functions a script calls.
func reachOf(script []act) abi.Reach {
	reach := abi.ReachOwner
	for _, s := range script {
		if f, ok := abi.FunctionByName(s[0].(string)); ok {
			reach = max(reach, f.Reach)
		}
	}
	return reach
}

// errnosOf decodes the output of a scripted guest.
func errnosOf(r servertest.Response) []abi.Errno {
	r.T.Helper()
	var out []abi.Errno
	r.Want(200).JSON(&out)
	return out
}

// admitAll uploads a module and lets user:alice invoke its capabilities in one environment.
func admitAll(t testing.TB, g *servertest.Gateway, module []byte, environment string, install map[string]any) {
	t.Helper()
	var up struct {
		Report struct {
			Manifest abi.Manifest `json:"manifest"`
		} `json:"report"`
	}
	g.Upload(module).Want(201).JSON(&up)
	m := up.Report.Manifest
	g.Install(m.Name, []string{environment}, install).Want(200)
	for _, p := range m.Provides {
		g.Grant("user:alice", string(p.Ref), environment)
	}
}

// withoutEnd gives an environment so much fuel that spin is ended by something else.
func withoutEnd(t testing.TB, g *servertest.Gateway, slug string) {
	t.Helper()
	path := "/v1/environments/" + slug
	was := g.Control("GET", path, nil).Want(200)
	g.Control("PUT", path, map[string]any{"limits": map[string]int64{"fuel": abi.OperatorMax}}, "If-Match", was.Header.Get("ETag")).Want(200)
}

// lowerLimits sets limits of an environment and puts back what it found when the test ends.
func lowerLimits(t testing.TB, g *servertest.Gateway, slug string, limits map[string]int64) {
	t.Helper()
	path := "/v1/environments/" + slug
	set := func(l map[string]int64) map[string]int64 {
		was := g.Control("GET", path, nil).Want(200)
		var e struct {
			Limits map[string]int64 `json:"limits"`
		}
		was.JSON(&e)
		g.Control("PUT", path, map[string]any{"limits": l}, "If-Match", was.Header.Get("ETag")).Want(200)
		return e.Limits
	}
	was := set(limits)
	t.Cleanup(func() { set(was) })
}

// sendRaw sends bytes as they are to an address ("http://…") and reads one answer. A nil answer
// means that the connection was closed without one.
func sendRaw(t testing.TB, url, request string) *servertest.Response {
	t.Helper()
	c := dialRaw(t, url)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return readRaw(t, c)
}

func dialRaw(t testing.TB, url string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(90 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func readRaw(t testing.TB, c net.Conn) *servertest.Response {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &servertest.Response{T: t, Status: res.StatusCode, Header: res.Header, Body: body}
}

// wellFormed decodes a problem document, and fails when the body is not one that can be acted on.
func wellFormed(t testing.TB, r servertest.Response) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(r.Body))
	var p map[string]any
	if err := dec.Decode(&p); err != nil || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("not a problem document: %d %s: %s", r.Status, r.Header.Get("Content-Type"), r.Body)
	}
	info, known := r.Code().Info()
	if !known || info.Status != r.Status || p["detail"] == nil || p["title"] == nil || p["kind"] != string(info.Kind) {
		t.Errorf("a problem document that says too little: %d %s", r.Status, r.Body)
	}
	for _, word := range []string{"goroutine", ".go:", "runtime error", "0xc0", temporary()} {
		if bytes.Contains(r.Body, []byte(word)) {
			t.Errorf("%q in %s", word, r.Body)
		}
	}
	return p
}

// temporary is what no answer may name: where temporary directories are.
func temporary() string { return strings.TrimSuffix(os.TempDir(), "/") + "/" }

// rowOfRefusal is the audit row of a request that was refused before it became an invocation,
// wherever it is kept.
func rowOfRefusal(t testing.TB, g *servertest.Gateway, r servertest.Response) map[string]any {
	t.Helper()
	id, _ := wellFormed(t, r)["auditId"].(string)
	for _, org := range []string{"default", "system"} {
		if got := g.Control("GET", "/v1/audit/"+id+"?org="+org, nil); got.Status == 200 {
			var row map[string]any
			got.JSON(&row)
			return row
		}
	}
	t.Fatalf("no row %q of %s", id, r.Body)
	return nil
}

// filesBelow lists every file below dir with its size.
func filesBelow(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[strings.TrimPrefix(path, dir)] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

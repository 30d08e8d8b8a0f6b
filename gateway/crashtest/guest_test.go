package crashtest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// The input of every capability is a request document whose URL ends with an id. The guest
// uses it whole as the request and as a value, and the id as a key and as a file's name.
const (
	refDo   = "crash:all.do@1"   // fetch, store the key, create the file, answer the input
	refKV   = "crash:key.get@1"  // answer the key's value
	refRead = "crash:file.get@1" // answer the file
	refPut  = "crash:file.put@1" // overwrite the file

	idLength = 16
)

func newID() string {
	var b [idLength / 2]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// document is the input for an id. Its tail, from the id on, has a fixed length.
func document(origin, id string) string {
	return string(wasmtest.MustJSON(struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}{"GET", origin + "/e/" + id}))
}

// guest assembles the biome.
func guest() []byte {
	const at, buffer, size = 1024, 16 << 10, 8 << 10
	const i64LtS, tail = 0x53, idLength + 2 // the id, a quote and a brace
	b := wasmtest.New()
	host := map[string]uint32{}
	for _, name := range []string{"input", "result_read", "output", "http_fetch", "kv_put", "kv_get", "file_create", "file_read", "file_write"} {
		host[name] = b.Host(name)
	}
	in := wasmtest.Cat(wasmtest.I32Const(at), wasmtest.LocalGet(0))
	id := wasmtest.Cat(
		wasmtest.I32Const(at), wasmtest.LocalGet(0), wasmtest.Op(wasmtest.OpI32Add), wasmtest.I32Const(tail), wasmtest.Op(wasmtest.OpI32Sub),
		wasmtest.I32Const(idLength))
	// must ends the invocation as failed when a call answers with an errno.
	must := func(call string, args ...[]byte) []byte {
		return wasmtest.Cat(wasmtest.Cat(args...), wasmtest.Call(host[call]), wasmtest.I64Const(0), wasmtest.Op(i64LtS),
			wasmtest.If(wasmtest.I32Const(1), wasmtest.Op(wasmtest.OpReturn)))
	}
	read := func(into int32) []byte {
		return wasmtest.Cat(wasmtest.I32Const(into), wasmtest.I32Const(0), wasmtest.I32Const(size), wasmtest.Call(host["result_read"]), wasmtest.Op(wasmtest.OpI32WrapI64))
	}
	answer := wasmtest.Cat(wasmtest.Call(host["output"]), wasmtest.Op(wasmtest.OpI32WrapI64))
	answerInput := wasmtest.Cat(in, answer)
	answerResult := wasmtest.Cat(wasmtest.I32Const(buffer), read(buffer), answer)

	m := wasmtest.Manifest("crash")
	m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "to have an effect"}}
	for export, c := range map[string]struct {
		ref   string
		reach abi.Reach
		body  []byte
	}{
		"all": {refDo, abi.ReachIntegration, wasmtest.Cat(
			must("http_fetch", in, wasmtest.I32Const(0), wasmtest.I32Const(0)), must("kv_put", id, in), must("file_create", id, in), answerInput)},
		"key":  {refKV, abi.ReachIntegration, wasmtest.Cat(must("kv_get", id), answerResult)},
		"file": {refRead, abi.ReachIntegration, wasmtest.Cat(must("file_read", id, wasmtest.I64Const(0), wasmtest.I32Const(size)), answerResult)},
		"put":  {refPut, abi.ReachIntegration, wasmtest.Cat(must("file_write", id, in), answerInput)},
	} {
		whole := wasmtest.Cat(wasmtest.Call(host["input"]), wasmtest.Op(wasmtest.OpDrop), read(at), wasmtest.LocalSet(0), c.body)
		b.ExportFunc(export, b.Func(nil, wasmtest.Types(wasmtest.I32), wasmtest.Types(wasmtest.I32), whole))
		m.Provides = append(m.Provides, wasmtest.Provide(c.ref, export, c.reach))
	}
	return b.Memory(1).ExportMemory().Manifest(json.RawMessage(wasmtest.MustJSON(m))).Bytes()
}

package peer

import (
	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// The guests of the soak that leave something behind, and take it away again.

const (
	nameAt, bufferAt = 16, 1024 // of a key or path, and of what is stored
	storedMost       = 16 << 10
)

// Keeper is a biome that puts its input under a key, gets it, answers its input, and deletes the key.
func Keeper(name, ref string) []byte {
	b := w.New()
	put, get, remove := b.Host("kv_put"), b.Host("kv_get"), b.Host("kv_delete")
	key := w.Cat(w.I32Const(nameAt), w.I32Const(4))
	return storing(b, name, ref, "item", func(buffer []byte) []byte {
		return w.Cat(
			key, buffer, w.Call(put), w.Op(w.OpDrop),
			key, w.Call(get), w.Op(w.OpDrop),
			key, w.Call(remove), w.Op(w.OpDrop),
		)
	})
}

// Filer is a biome that makes a file of its input, looks at it, answers its input, and removes the file.
func Filer(name, ref string) []byte {
	b := w.New()
	create, stat, remove := b.Host("file_create"), b.Host("file_stat"), b.Host("file_remove")
	path := w.Cat(w.I32Const(nameAt), w.I32Const(4))
	return storing(b, name, ref, "file", func(buffer []byte) []byte {
		return w.Cat(
			path, buffer, w.Call(create), w.Op(w.OpDrop),
			path, w.Call(stat), w.Op(w.OpDrop),
			path, w.Call(remove), w.Op(w.OpDrop),
		)
	})
}

// storing is a capability that reads its input into a buffer, does something with it, and outputs
// the buffer, given as its address and length. Others may do the same at the same time: what it
// stored may be gone when it looks, and that is no failure.
func storing(b *w.Builder, name, ref, item string, body func(buffer []byte) []byte) []byte {
	const length = 0 // a local
	input, result, output := b.Host("input"), b.Host("result_read"), b.Host("output")
	read := w.Cat(w.I32Const(bufferAt), w.I32Const(0), w.I32Const(storedMost), w.Call(result), w.Op(w.OpI32WrapI64), w.LocalSet(length))
	buffer := w.Cat(w.I32Const(bufferAt), w.LocalGet(length))
	run := b.Func(nil, w.Types(w.I32), w.Types(w.I32),
		w.Call(input), w.Op(w.OpDrop), read,
		body(buffer),
		buffer, w.Call(output), w.Op(w.OpI32WrapI64),
	)
	return b.ExportFunc("run", run).Memory(1, 1).ExportMemory().Data(nameAt, []byte(item)).
		Manifest(w.Manifest(name, w.Provide(ref, "run", abi.ReachOwner))).Bytes()
}

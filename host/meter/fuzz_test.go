package meter_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"

	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// script turns bytes into programs: valid ones, that loop, call, branch and copy at will.
type script struct {
	data []byte
	left int // statements that may still be made
}

func (s *script) next(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := int(s.data[0])
	s.data = s.data[1:]
	return b % n
}

const (
	fuzzFuncs  = 4
	fuzzLocals = 4 // two of them parameters
)

// value makes code that leaves an i32.
func (s *script) value(depth int) []byte {
	s.left--
	if s.left < 0 || depth > 6 {
		return w.I32Const(int32(s.next(7)))
	}
	switch s.next(9) {
	case 0:
		return w.I32Const(int32(s.next(256)) - 100)
	case 1, 2:
		return w.LocalGet(uint32(s.next(fuzzLocals)))
	case 3:
		return w.Cat(s.value(depth+1), s.value(depth+1), w.Op([]byte{0x6a, 0x6b, 0x6c, 0x6d, 0x70, 0x71, 0x48}[s.next(7)]))
	case 4:
		return w.Cat(s.value(depth+1), w.Op(0x28, 2, 0))
	case 5:
		return w.Cat(s.value(depth+1), s.value(depth+1), w.Call(uint32(s.next(fuzzFuncs))))
	case 6:
		return w.Cat(s.value(depth+1), s.value(depth+1), w.I32Const(int32(s.next(fuzzFuncs+1))), w.CallIndirect(0, 0))
	case 7:
		return w.Cat(s.value(depth+1), w.Op(0x04, w.I32), s.value(depth+1), w.Op(w.OpElse), s.value(depth+1), w.Op(w.OpEnd))
	default:
		return w.Cat(s.value(depth+1), w.MemoryGrow())
	}
}

// statements makes code that leaves nothing, with so many labels around it.
func (s *script) statements(depth, labels int) []byte {
	var out []byte
	for range s.next(4) + 1 {
		s.left--
		if s.left < 0 || depth > 8 {
			break
		}
		switch s.next(11) {
		case 0, 1:
			out = append(out, w.Cat(s.value(depth), w.LocalSet(uint32(s.next(fuzzLocals))))...)
		case 2:
			out = append(out, w.Cat(s.value(depth), s.value(depth), w.Op(0x36, 2, 0))...)
		case 3:
			out = append(out, w.Block(s.statements(depth+1, labels+1))...)
		case 4:
			out = append(out, w.Loop(s.statements(depth+1, labels+1))...)
		case 5:
			out = append(out, w.Cat(s.value(depth), w.If(s.statements(depth+1, labels+1), w.Op(w.OpElse), s.statements(depth+1, labels+1)))...)
		case 6:
			if labels > 0 { // the function's own label wants a result
				out = append(out, w.Cat(s.value(depth), w.BrIf(uint32(s.next(labels))))...)
			}
		case 7:
			if labels > 0 {
				out = append(out, w.Cat(s.value(depth), w.BrTable(uint32(s.next(labels)), uint32(s.next(labels)), uint32(s.next(labels))))...)
			}
		case 8:
			out = append(out, w.Cat(s.value(depth), s.value(depth), s.value(depth), w.Op(0xfc, 10, 0, 0))...)
		case 9:
			out = append(out, w.Cat(s.value(depth), s.value(depth), s.value(depth), w.Op(0xfc, 11, 0))...)
		case 10:
			out = append(out, w.Cat(s.value(depth), w.If(s.value(depth), w.Op(w.OpReturn)))...)
		}
	}
	return out
}

// module has functions of which half are in a table: what only direct calls reach is metered in
// another way.
func (s *script) module() []byte {
	b := w.New()
	b.Type(w.Types(w.I32, w.I32), w.Types(w.I32))
	b.Table(w.FuncRef, fuzzFuncs+1, fuzzFuncs+1)
	funcs := []uint32{}
	for range fuzzFuncs {
		s.left = 60
		f := b.Func(w.Types(w.I32, w.I32), w.Types(w.I32), w.Types(w.I32, w.I32), s.statements(0, 0), s.value(0))
		funcs = append(funcs, f)
	}
	b.ExportFunc("run", funcs[0])
	return b.Memory(1, 3).ExportMemory().Elem(0, funcs[:fuzzFuncs/2]...).Bytes()
}

// Whatever a program does, it does the same when it is rewritten, and costs the same however
// fuel is handed out.
func FuzzRewrite(f *testing.F) {
	for i := range 64 {
		seed := make([]byte, 400)
		x := uint32(i + 1)
		for j := range seed {
			x = x*1664525 + 1013904223
			seed[j] = byte(x >> 24)
		}
		f.Add(seed)
	}
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		module := (&script{data: data}).module()
		var outcome [2]string
		var used [2]int64
		res := rewrite(t, module)
		for i, slice := range []int64{1 << 20, 1009} {
			k := &tank{slice: slice, budget: 1 << 22}
			m := start(t, res.Module, k)
			results, err := m.ExportedFunction("run").Call(ctx, 3, 5)
			if outcome[i] = kind(err); outcome[i] == errExhausted.Error() || outcome[i] == errOverflow.Error() {
				return // plain, it might not end, or only where the engine's stack does
			}
			memory, _ := m.Memory().Read(0, m.Memory().Size())
			outcome[i] += fmt.Sprint(results, bytes.Count(memory, []byte{0}), len(memory))
			used[i] = k.used(m)
			if err == nil && depthOf(m) != res.StartDepth {
				t.Errorf("depth %d of %d came back", depthOf(m), res.StartDepth)
			}
		}
		if outcome[0] != outcome[1] || used[0] != used[1] {
			t.Errorf("in large slices %s for %d, in small ones %s for %d", outcome[0], used[0], outcome[1], used[1])
		}
		rt := wazero.NewRuntimeWithConfig(ctx, config())
		defer func() { _ = rt.Close(ctx) }()
		m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig())
		if err != nil {
			t.Fatal(err)
		}
		results, err := m.ExportedFunction("run").Call(ctx, 3, 5)
		memory, _ := m.Memory().Read(0, m.Memory().Size())
		if plain := kind(err) + fmt.Sprint(results, bytes.Count(memory, []byte{0}), len(memory)); plain != outcome[0] {
			t.Errorf("plain %s, metered %s", plain, outcome[0])
		}
	})
}

package servertest_test

import (
	"encoding/binary"
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// plug writes the body of one export of an Extism plug-in. It has four locals of type i64.
type plug struct {
	functions map[string]uint32
	counter   uint32 // a global
	code      []byte
}

const (
	opI64Eqz = 0x50
	opI64Add = 0x7c
	opDrop   = 0x1a
)

func (p *plug) add(parts ...[]byte) *plug {
	p.code = append(p.code, w.Cat(parts...)...)
	return p
}

// call calls a function of the interface, or of WASI, with arguments that are code.
func (p *plug) call(name string, args ...[]byte) *plug {
	i, ok := p.functions[name]
	if !ok {
		panic("the plug-in does not import " + name)
	}
	return p.add(w.Cat(args...), w.Call(i))
}

// into puts what the last call answered into a local.
func (p *plug) into(local uint32) *plug { return p.add(w.LocalSet(local)) }

// text makes a block that holds s and puts its address into a local.
func (p *plug) text(local uint32, s string) *plug {
	p.call("alloc", w.I64Const(int64(len(s)))).into(local)
	at := func(i int) []byte { return w.Cat(w.LocalGet(local), w.I64Const(int64(i)), w.Op(opI64Add)) }
	i := 0
	for ; i+8 <= len(s); i += 8 {
		p.call("store_u64", at(i), w.I64Const(int64(binary.LittleEndian.Uint64([]byte(s[i:])))))
	}
	for ; i < len(s); i++ {
		p.call("store_u8", at(i), w.I32Const(int32(s[i])))
	}
	return p
}

// output makes the block in a local the output.
func (p *plug) output(local uint32) *plug {
	p.call("length", w.LocalGet(local)).into(3)
	return p.call("output_set", w.LocalGet(local), w.LocalGet(3))
}

// digit makes the number below 10 in a local the output.
func (p *plug) digit(local uint32) *plug {
	p.call("alloc", w.I64Const(1)).into(2)
	p.call("store_u8", w.LocalGet(2), w.Cat(w.LocalGet(local), w.Op(w.OpI32WrapI64), w.I32Const('0'), w.Op(w.OpI32Add)))
	return p.output(2)
}

// plugged is a capability of a plug-in.
type plugged struct {
	ref   string
	reach abi.Reach // 0 is owner
	body  func(*plug)
	fails bool // it returns 1
	start bool // it is the export _start
}

// plugin is an Extism plug-in that imports some functions beside those that make blocks. more changes the
// manifest before it is embedded.
func plugin(name string, imports []string, more func(*abi.Manifest), all ...plugged) []byte {
	b := w.New()
	p := &plug{functions: map[string]uint32{}}
	for _, name := range append([]string{"alloc", "length", "store_u8", "store_u64", "output_set"}, imports...) {
		if _, twice := p.functions[name]; twice {
			continue
		}
		if fn, ok := abi.ExtismFunctionByName(name); ok {
			var params, results []byte
			for _, t := range fn.Params {
				params = append(params, byte(t))
			}
			if fn.Result != 0 {
				results = append(results, byte(fn.Result))
			}
			p.functions[name] = b.ImportFunc(abi.ExtismModule, name, params, results)
			continue
		}
		p.functions[name] = b.WASI(name)
	}
	p.counter = b.Global(w.I64, true, w.I64Const(0))
	var provides []abi.Descriptor
	for i, a := range all {
		p.code = nil
		a.body(p)
		export, results := fmt.Sprintf("run%d", i), w.Types(w.I32)
		if a.start {
			export, results = "_start", nil
		} else {
			p.add(w.I32Const(map[bool]int32{true: 1}[a.fails]))
		}
		b.ExportFunc(export, b.Func(nil, results, w.Types(w.I64, w.I64, w.I64, w.I64), p.code))
		d := w.Provide(a.ref, export, max(a.reach, abi.ReachOwner))
		d.InputEncoding, d.OutputEncoding = abi.EncodingText, abi.EncodingText
		provides = append(provides, d)
	}
	m := w.Manifest(name, provides...)
	m.ABI = abi.FaceExtism
	if more != nil {
		more(m)
	}
	return b.Memory(1).ExportMemory().Manifest(m).Bytes()
}

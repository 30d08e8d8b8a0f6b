package wasm_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

func TestStructure(t *testing.T) {
	data := everything()
	m, problems := wasm.Read(data, abi.DefaultLimits())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	ranges(t, data, m)
	if got := m.Imports[0]; got.Module != abi.Module || got.Name != "log" || got.Kind != wasm.KindFunc || got.Offset != 8+2+m.Sections[0].Payload.End-m.Sections[0].Payload.Start+3 {
		t.Errorf("import %+v", got)
	}
	log, _ := abi.FunctionByName("log")
	ft, ok := m.FuncType(0)
	if !ok || len(ft.Params) != len(log.Params) || ft.String() != "(i32, i32, i32) -> i64" {
		t.Errorf("type of the import: %v %v", ft, ok)
	}
	if _, ok := m.FuncType(4); ok {
		t.Error("there are four functions, a fifth has a type")
	}
	wantUses := wasm.Uses{
		Instructions: m.Uses.Instructions, MaxBodyBytes: m.Uses.MaxBodyBytes, MaxLocals: 2, MaxNesting: 2, MaxBrTable: 2, MaxBlocks: 5,
		Loops: 1, IndirectCalls: 1, MemoryGrows: 1, TableGrows: 1, SegmentDrops: 1, MemoryInits: 1, RefFuncs: 1, BulkOperations: 4,
		Features: []string{"bulk-memory", "reference-types", "simd"},
	}
	if diff := cmp.Diff(wantUses, m.Uses); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, e := range m.Exports {
		names = append(names, e.Kind.String()+" "+e.Name)
		if at := data[e.Offset]; int(at) != len(e.Name) {
			t.Errorf("export %s is not at %d", e.Name, e.Offset)
		}
	}
	if diff := cmp.Diff([]string{"function run", "memory memory"}, names); diff != "" {
		t.Error(diff)
	}
	if m.Start == nil || m.Start.Func != 2 || len(m.Elements) != 1 || m.Elements[0].Entries != 1 || len(m.Data) != 2 ||
		string(m.Data[0].Init.Of(data)) != "hello" || m.Data[1].Mode != wasm.Passive {
		t.Errorf("start %v, elements %v, data %v", m.Start, m.Elements, m.Data)
	}
	if at, ok := wasm.ConstI32(data, m.Data[0].Offset); !ok || at != 8 {
		t.Errorf("the first data segment is at %d", at)
	}
	if _, ok := wasm.ConstI32(data, m.Globals[0].Init); ok {
		t.Error("global.get is a constant number")
	}
	if notes := m.Custom("note"); len(notes) != 1 || string(notes[0].Content.Of(data)) != "hi" {
		t.Errorf("custom sections %v", notes)
	}
}

// Everything the reader records can be found again in the bytes: what a rewriting pass relies on.
func TestBodiesAreWhereTheyAre(t *testing.T) {
	b := w.New()
	bodies := [][]byte{w.Op(0, w.OpEnd), w.Cat(w.Op(1, 3, w.I64), w.Op(w.OpNop, w.OpEnd)), w.Cat(w.Op(0), w.I32Const(70), w.Op(w.OpDrop, w.OpEnd))}
	for _, body := range bodies {
		b.RawFunc(b.Type(nil, nil), body)
	}
	data := b.Bytes()
	m, problems := wasm.Read(data, abi.DefaultLimits())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i, f := range m.Functions {
		if !bytes.Equal(f.Body.Of(data), bodies[i]) {
			t.Errorf("body %d: %x", i, f.Body.Of(data))
		}
	}
	if got := m.Functions[1].Code.Of(data); !bytes.Equal(got, w.Op(w.OpNop, w.OpEnd)) {
		t.Errorf("instructions %x", got)
	}
}

// Numbers in LEB128: what is accepted is what the specification accepts, in every length.
func TestNumbers(t *testing.T) {
	i32 := func(raw []byte) []byte { // a module with an i32.const of these bytes
		b := w.New()
		b.Func(nil, nil, nil, w.Op(0x41), raw, w.Op(w.OpDrop))
		return b.Bytes()
	}
	i64 := func(raw []byte) []byte {
		b := w.New()
		b.Func(nil, nil, nil, w.Op(0x42), raw, w.Op(w.OpDrop))
		return b.Bytes()
	}
	u32 := func(raw []byte) []byte { // and one with a call of a function by these bytes
		b := w.New()
		b.Func(nil, nil, nil, w.Op(0x10), raw)
		return b.Bytes()
	}
	for _, c := range []struct {
		name   string
		module []byte
		ok     bool
	}{
		{"u32 padded to five", u32(w.LEBPadded(0, 5)), true},
		{"u32 padded to six", u32(w.LEBPadded(0, 6)), false},
		{"u32 with a bit too many", u32([]byte{0x80, 0x80, 0x80, 0x80, 0x10}), false},
		{"i32 smallest", i32(w.SLEB(math.MinInt32)), true},
		{"i32 largest", i32(w.SLEB(math.MaxInt32)), true},
		{"i32 below", i32(w.SLEB(math.MinInt32 - 1)), false},
		{"i32 above", i32(w.SLEB(math.MaxInt32 + 1)), false},
		{"i32 -1 in five", i32([]byte{0xff, 0xff, 0xff, 0xff, 0x7f}), true},
		{"i32 -1 with a wrong sign", i32([]byte{0xff, 0xff, 0xff, 0xff, 0x4f}), false},
		{"i32 positive with a wrong sign", i32([]byte{0xff, 0xff, 0xff, 0xff, 0x17}), false},
		{"i32 in six", i32([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), false},
		{"i64 smallest", i64(w.SLEB(math.MinInt64)), true},
		{"i64 largest", i64(w.SLEB(math.MaxInt64)), true},
		{"i64 with a bit too many", i64([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}), false},
		{"i64 in eleven", i64([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), false},
	} {
		if _, problems := wasm.Read(c.module, abi.DefaultLimits()); (len(problems) == 0) != c.ok {
			t.Errorf("%s: %v", c.name, problems)
		}
	}
}

// Each limit that a module can be over bites one past its value and not at it (PF-D1), with
// its own code.
func TestLimits(t *testing.T) {
	repeat := func(id byte, n int, item []byte) []byte {
		b := w.New()
		b.Func(nil, nil, nil)
		return b.Memory(1).Repeat(id, n, item).Bytes()
	}
	inBody := func(instructions ...[]byte) []byte {
		b := w.New()
		b.Func(nil, nil, nil, instructions...)
		return b.Bytes()
	}
	constant := w.Cat(w.I32Const(0), w.Op(w.OpEnd))
	for _, c := range []struct {
		limit abi.Limit
		value int64
		build func(n int) []byte
	}{
		{abi.LimitModuleBytes, 100, func(n int) []byte { return w.Cat(w.Header(), w.Section(0, make([]byte, n-10))) }},
		{abi.LimitBodyBytes, 200, func(n int) []byte { return inBody(bytes.Repeat(w.Op(w.OpNop), n-2)) }},
		{abi.LimitLocals, 10, func(n int) []byte {
			b := w.New()
			b.Func(nil, nil, bytes.Repeat(w.Op(w.I64), n))
			return b.Bytes()
		}},
		{abi.LimitNesting, 5, func(n int) []byte {
			return inBody(bytes.Repeat(w.Op(2, w.BlockVoid), n), bytes.Repeat(w.Op(w.OpEnd), n))
		}},
		{abi.LimitBrTable, 5, func(n int) []byte { return inBody(w.I32Const(0), w.BrTable(0, make([]uint32, n)...)) }},
		{abi.LimitBlocks, 5, func(n int) []byte { return inBody(bytes.Repeat(w.Op(3, w.BlockVoid, w.OpEnd), n)) }},
		{abi.LimitFunctions, 5, func(n int) []byte {
			b := w.New()
			for range n {
				b.Func(nil, nil, nil)
			}
			return b.Bytes()
		}},
		{abi.LimitTypes, 5, func(n int) []byte { return repeat(w.SectionType, n-1, w.Op(0x60, 0, 0)) }},
		{abi.LimitImports, 5, func(n int) []byte { return repeat(w.SectionImport, n, w.Cat(w.Name("m"), w.Name("f"), w.Op(0, 0))) }},
		{abi.LimitExports, 5, func(n int) []byte {
			b := w.New()
			f := b.Func(nil, nil, nil)
			for i := range n {
				b.ExportFunc(fmt.Sprint(i), f)
			}
			return b.Bytes()
		}},
		{abi.LimitGlobals, 5, func(n int) []byte { return repeat(w.SectionGlobal, n, w.Cat(w.Op(w.I32, 0), constant)) }},
		{abi.LimitDataSegments, 5, func(n int) []byte { return repeat(w.SectionData, n, w.Op(1, 0)) }},
		{abi.LimitElementSegments, 5, func(n int) []byte { return repeat(w.SectionElement, n, w.Op(1, 0, 0)) }},
		{abi.LimitCustomSections, 5, func(n int) []byte {
			b := w.New()
			for range n {
				b.Custom("x", nil)
			}
			return b.Bytes()
		}},
		{abi.LimitNameBytes, 20, func(n int) []byte { return w.New().Custom(strings.Repeat("n", n), nil).Bytes() }},
		{abi.LimitMemoryBytes, 3 * wasm.PageBytes, func(n int) []byte {
			return w.New().Memory(uint32((n + wasm.PageBytes - 1) / wasm.PageBytes)).Bytes()
		}},
		{abi.LimitTables, 3, func(n int) []byte { return repeat(w.SectionTable, n, w.Cat(w.Op(w.FuncRef), w.Limits(0))) }},
		{abi.LimitTableEntries, 30, func(n int) []byte {
			b := w.New()
			b.Table(w.FuncRef, 10)
			b.Table(w.ExternRef, uint32(n-10))
			return b.Bytes()
		}},
		{abi.LimitTableEntries, 30, func(n int) []byte {
			b := w.New()
			b.Func(nil, nil, nil)
			return b.Entry(w.SectionElement, w.Cat(w.Op(1, 0), w.Vec(make([]byte, n)))).Bytes()
		}},
	} {
		limits := abi.DefaultLimits()
		limits[c.limit] = c.value
		name := c.limit.Info().Name
		if _, problems := wasm.Read(c.build(int(c.value)), limits); len(problems) > 0 {
			t.Errorf("%s at its value: %v", name, problems)
		}
		_, problems := wasm.Read(c.build(int(c.value)+1), limits)
		if !slices.ContainsFunc(problems, func(p wasm.Problem) bool { return p.Code == c.limit.Info().Code && strings.Contains(p.Message, name) }) {
			t.Errorf("%s one past its value: %v", name, problems)
		}
	}
	if _, problems := wasm.Read(everything(), abi.Limits{}); len(problems) == 0 {
		t.Error("limits of zero admit a module")
	}
}

// One problem does not hide the next: sections and bodies are read on their own.
func TestAllProblemsAtOnce(t *testing.T) {
	b := w.New()
	b.Import("a", "b", w.KindFunc, 9)
	b.Func(nil, nil, nil, w.Op(0xff))
	b.Func(nil, nil, nil, w.LocalGet(7), w.Op(w.OpDrop), w.Call(70))
	b.Func(nil, nil, nil, w.Op(0x12, 0))
	b.Export("x", w.KindTable, 3).Custom("\xff", nil)
	_, problems := wasm.Read(b.Bytes(), abi.DefaultLimits())
	var got []abi.Code
	for i, p := range problems {
		got = append(got, p.Code)
		if i > 0 && problems[i-1].Offset > p.Offset {
			t.Errorf("%v comes after %v", p, problems[i-1])
		}
	}
	want := []abi.Code{
		abi.CodeModuleInvalid, abi.CodeModuleInvalid, abi.CodeModuleMalformed, abi.CodeModuleInvalid, abi.CodeModuleInvalid,
		abi.CodeModuleFeature, abi.CodeModuleMalformed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v\n%s", problems, diff)
	}
}

// What is refused is refused by name and where it is.
func TestRefusals(t *testing.T) {
	code := func(instructions ...[]byte) []byte {
		b := w.New()
		b.Func(nil, nil, nil, instructions...)
		return b.Memory(1).Bytes()
	}
	section := func(id byte, item []byte) []byte { return w.New().Entry(id, item).Bytes() }
	constant := func(expr ...byte) []byte { return section(w.SectionGlobal, w.Cat(w.Op(w.I32, 0), expr)) }
	imports := func(desc ...byte) []byte {
		return section(w.SectionImport, w.Cat(w.Name("m"), w.Name("n"), desc))
	}
	for _, c := range []struct {
		module []byte
		code   abi.Code
		says   string
	}{
		{section(w.SectionType, w.Op(0x4e, 1, 0x60, 0, 0)), abi.CodeModuleFeature, "garbage collection"},
		{section(w.SectionType, w.Op(0x61, 0, 0)), abi.CodeModuleFeature, "reference-typed strings"},
		{section(w.SectionType, w.Op(0x60, 1, 0x68, 0)), abi.CodeModuleFeature, "stack switching"},
		{section(w.SectionType, w.Op(0x60, 1, 0x40, 0)), abi.CodeModuleMalformed, "0x40 is not a value type"},
		{section(w.SectionType, w.Op(0x59, 0, 0)), abi.CodeModuleMalformed, "0x59"},
		{imports(2, 0, 1, 9), abi.CodeModuleMalformed, "left over"},
		{imports(4, 0, 0), abi.CodeModuleFeature, "exception handling"},
		{imports(5, 0), abi.CodeModuleMalformed, "kind of an import"},
		{w.New().Import("a", "a", w.KindMemory, 0, 1).Memory(1).Bytes(), abi.CodeModuleFeature, "multi-memory"},
		{w.New().Import("a", "a", w.KindMemory, 0, 1).Import("a", "b", w.KindMemory, 0, 1).Bytes(), abi.CodeModuleFeature, "multi-memory"},
		{section(w.SectionMemory, w.Op(0x10, 1)), abi.CodeModuleMalformed, "0x10"},
		{section(w.SectionMemory, w.Op(0x02, 1)), abi.CodeModuleFeature, "threads"},
		{section(w.SectionMemory, w.Op(0x05, 1, 1)), abi.CodeModuleFeature, "memory64"},
		{section(w.SectionMemory, w.Op(0x08, 1, 0)), abi.CodeModuleFeature, "custom page sizes"},
		{section(w.SectionMemory, w.Limits(2, 1)), abi.CodeModuleInvalid, "minimum"},
		{section(w.SectionMemory, w.Limits(1, 65537)), abi.CodeModuleInvalid, "65536 pages"},
		{section(w.SectionTable, w.Op(w.I32, 0, 1)), abi.CodeModuleMalformed, "type of a table"},
		{section(w.SectionTable, w.Op(0x63, 0, 0, 1)), abi.CodeModuleFeature, "typed function references"},
		{section(w.SectionTable, w.Cat(w.Op(w.FuncRef), w.Limits(2, 1))), abi.CodeModuleInvalid, "minimum"},
		{section(w.SectionGlobal, w.Cat(w.Op(w.I32, 2), w.I32Const(0), w.Op(w.OpEnd))), abi.CodeModuleFeature, "shared-everything"},
		{section(w.SectionGlobal, w.Cat(w.Op(w.I32, 9), w.I32Const(0), w.Op(w.OpEnd))), abi.CodeModuleMalformed, "mutable"},
		{constant(w.OpEnd, w.OpNop), abi.CodeModuleInvalid, "empty constant"},
		{constant(w.OpNop, w.OpEnd), abi.CodeModuleInvalid, "0x01 in a constant"},
		{constant(0x6a, w.OpEnd), abi.CodeModuleFeature, "extended constant"},
		{constant(0x41, 0, 0x41, 0, 0x6a, w.OpEnd), abi.CodeModuleFeature, "extended constant"},
		{constant(0xfb, 0x1c, w.OpEnd), abi.CodeModuleFeature, "garbage collection"},
		{constant(0xfd, 0x0d, w.OpEnd), abi.CodeModuleInvalid, "vector instruction 0x0d"},
		{constant(0xd0, 0x00, w.OpEnd), abi.CodeModuleFeature, "typed function references"},
		{constant(0xd0, 0x6e, w.OpEnd), abi.CodeModuleFeature, "garbage collection"},
		{constant(0xd0, 0x55, w.OpEnd), abi.CodeModuleMalformed, "reference type"},
		{section(w.SectionExport, w.Cat(w.Name("x"), w.Op(4, 0))), abi.CodeModuleFeature, "exception handling"},
		{section(w.SectionExport, w.Cat(w.Name("x"), w.Op(5, 0))), abi.CodeModuleMalformed, "kind of an export"},
		{section(w.SectionElement, w.Op(8, 0, 0)), abi.CodeModuleMalformed, "element segment"},
		{section(w.SectionElement, w.Op(1, 1, 0)), abi.CodeModuleMalformed, "kind of elements"},
		{section(w.SectionElement, w.Op(5, w.I32, 0)), abi.CodeModuleMalformed, "of i32"},
		{section(w.SectionData, w.Op(3, 0)), abi.CodeModuleMalformed, "data segment"},
		{section(w.SectionData, w.Op(2, 1, 0x41, 0, w.OpEnd, 0)), abi.CodeModuleFeature, "multi-memory"},
		{w.New().Start(0).Bytes(), abi.CodeModuleInvalid, "function 0"},
		{func() []byte { b := w.New(); return b.Start(b.Func(w.Types(w.I32), nil, nil)).Bytes() }(), abi.CodeModuleInvalid, "(i32) -> ()"},
		{w.Cat(w.Header(), w.Section(8, nil)), abi.CodeModuleMalformed, "ends before"},
		{w.Cat(w.Header(), w.Section(13, w.Op(0))), abi.CodeModuleFeature, "exception handling"},
		{w.Cat(w.Header(), w.Section(14, w.Op(0))), abi.CodeModuleFeature, "strings"},
		{code(w.Op(0x16)), abi.CodeModuleMalformed, "0x16"},
		{code(w.Op(0xfc, 99)), abi.CodeModuleMalformed, "0xfc 63"},
		{code(w.Op(0xfc, 18)), abi.CodeModuleFeature, "memory control"},
		{code(w.Op(0xfd, 0x9a, 0x01)), abi.CodeModuleMalformed, "0xfd 9a 01"},
		{code(w.Op(0xfe, 0)), abi.CodeModuleFeature, "threads"},
		{code(w.Op(0xd4)), abi.CodeModuleFeature, "typed function references"},
		{code(w.Op(0xe0, 0)), abi.CodeModuleFeature, "stack switching"},
		{code(w.Op(2, 0x63, 0)), abi.CodeModuleFeature, "typed function references"},
		{code(w.Op(2, 0x41, w.OpEnd)), abi.CodeModuleMalformed, "type of a block"},
		{code(w.Op(2, 0xc0, 0x7f, w.OpEnd)), abi.CodeModuleMalformed, "type of a block"},
		{code(w.Op(0x3f, 1)), abi.CodeModuleFeature, "multi-memory"},
		{code(w.I32Const(0), w.Op(0x28, 0x40, 0, 0)), abi.CodeModuleFeature, "multi-memory"},
		{code(w.Op(0x1c, 2, w.I32, w.I32)), abi.CodeModuleInvalid, "select with 2 types"},
		{code(w.Op(0x0c, 1)), abi.CodeModuleInvalid, "label 1"},
		{func() []byte {
			b := w.New()
			b.Table(w.ExternRef, 1)
			b.Func(nil, nil, nil, w.CallIndirect(0, 0))
			return b.Bytes()
		}(), abi.CodeModuleInvalid, "externref"},
	} {
		_, problems := wasm.Read(c.module, abi.DefaultLimits())
		if !slices.ContainsFunc(problems, func(p wasm.Problem) bool { return p.Code == c.code && strings.Contains(p.Message, c.says) }) {
			t.Errorf("%x: wanted %s, %q; got %v", c.module[8:], c.code, c.says, problems)
		}
	}
}

func TestWords(t *testing.T) {
	all := wasm.FuncType{
		Params:  []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64, wasm.V128, wasm.FuncRef, wasm.ExternRef, 0},
		Results: slices.Repeat([]wasm.ValType{wasm.I32}, 17),
	}
	const want = "(i32, i64, f32, f64, v128, funcref, externref, unknown) -> " +
		"(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, …)"
	if got := all.String(); got != want {
		t.Error(got)
	}
	if got := wasm.KindTable.String() + wasm.KindGlobal.String() + wasm.Kind(9).String() + wasm.SectionID(99).String(); got != "tableglobalunknownunknown" {
		t.Error(got)
	}
	p := wasm.Problem{Code: abi.CodeModuleLimit, Offset: 7, Section: "code", Message: "too much"}
	if got := p.String(); got != "MODULE_LIMIT at byte 7 (code): too much" {
		t.Error(got)
	}
}

// The extensions to WebAssembly 1.0 that a module needs are named, wherever it uses them.
func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		code []byte
		want string
	}{
		{w.Op(w.OpNop), ""},
		{w.Cat(w.I32Const(0), w.Op(0xc0, w.OpDrop)), "sign-extension"},
		{w.Cat(w.F64Const(0), w.Op(0xfc, 3, w.OpDrop)), "saturating-float-to-int"},
		{w.Cat(w.I32Const(0), w.I32Const(0), w.I32Const(0), w.Op(0xfc, 11, 0)), "bulk-memory"},
		{w.Op(0xd0, w.ExternRef, w.OpDrop), "reference-types"},
		{w.Cat(w.Op(0xfd, 0x0c), make([]byte, 16), w.Op(w.OpDrop)), "simd"},
		{w.Op(2, w.V128, w.OpUnreachable, w.OpEnd, w.OpDrop), "simd"},
		{w.Op(2, 0, w.OpEnd), "multi-value"},
	} {
		b := w.New()
		b.Func(nil, nil, nil, c.code)
		m, problems := wasm.Read(b.Memory(1).Bytes(), abi.DefaultLimits())
		if got := strings.Join(m.Uses.Features, " "); got != c.want || len(problems) > 0 {
			t.Errorf("%x: %q, wanted %q %v", c.code, got, c.want, problems)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	b := w.New()
	for range 300 {
		b.Func(nil, nil, nil, w.Op(0xff))
	}
	_, problems := wasm.Read(b.Bytes(), abi.DefaultLimits())
	if len(problems) != wasm.MaxProblems || !strings.Contains(problems[wasm.MaxProblems-1].Message, "more") {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
}

// Reading a hostile module costs memory in proportion to it, whatever it announces.
func TestAllocation(t *testing.T) {
	allocates(t, everything())
	for _, m := range hostile.Modules() {
		allocates(t, m.Bytes())
	}
}

// Two readings of the same program must be one program: what the engine would take for
// another one is refused, and what it runs is what was read.
func TestEngineReadsTheSame(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct {
		name  string
		code  []byte
		takes bool // by the engine
	}{
		{"vector number cut short", w.Cat(w.Op(0xfd, 0x0c), make([]byte, 16), w.Op(0xfd, 0x80, w.OpDrop)), true},
		{"vector number padded", w.Cat(w.I32Const(0), w.Op(0xfd, 0x8b, 0x00, 0, 0)), false},
		{"relaxed vector number cut short", w.Cat(w.Op(0xfd, 0x0c), make([]byte, 16), w.Op(0xfd, 0x80, 0x02, w.BlockVoid, w.OpEnd, w.OpDrop)), true},
	} {
		b := w.New()
		b.Func(nil, nil, nil, c.code)
		module := b.Memory(1).Bytes()
		if _, problems := wasm.Read(module, abi.DefaultLimits()); len(problems) == 0 {
			t.Errorf("%s: accepted", c.name)
		}
		if err := e.takes(module); (err == nil) != c.takes {
			t.Errorf("%s: the engine changed its mind: %v", c.name, err)
		}
	}
}

func TestIdentify(t *testing.T) {
	for _, c := range []struct {
		data string
		code abi.Code
		says string
	}{
		{"", abi.CodeModuleNotWasm, "empty"},
		{"\x00asm", abi.CodeModuleMalformed, "header"},
		{"\x00as", abi.CodeModuleNotWasm, ""},
		{"\x00asm\x0d\x00\x01\x00", abi.CodeModuleComponent, "component"},
		{"\x00asm\x0a\x00\x01\x00rest", abi.CodeModuleComponent, "component"},
		{"\x00asm\x01\x00\x02\x00", abi.CodeModuleNotWasm, "version"},
		{"(module)", abi.CodeModuleText, "text format"},
		{"\ufeff;; c\n(; a\nb ;) ( module $m)", abi.CodeModuleText, "text format"},
		{"(component)", abi.CodeModuleText, "text format"},
		{"(;", abi.CodeModuleNotWasm, "text"},
		{"(lambda (x) x)", abi.CodeModuleNotWasm, "text"},
		{strings.Repeat(";; long\n", 1000), abi.CodeModuleNotWasm, "text"},
		{"\x1f\x8b\x08", abi.CodeModuleNotWasm, "gzip"},
		{"PK\x03\x04", abi.CodeModuleNotWasm, "zip"},
		{"\x7fELF", abi.CodeModuleNotWasm, "ELF"},
		{"#!/bin/sh\n", abi.CodeModuleNotWasm, "script"},
		{"version https://git-lfs.github.com/spec/v1\n", abi.CodeModuleNotWasm, "LFS"},
		{"\x00\x01\x02", abi.CodeModuleNotWasm, "begin with"},
	} {
		m, problems := wasm.Read([]byte(c.data), abi.DefaultLimits())
		if m != nil || len(problems) != 1 || problems[0].Code != c.code || !strings.Contains(problems[0].Message, c.says) {
			t.Errorf("%.20q: %v", c.data, problems)
		}
	}
}

// What toolchains make is accepted: the WASI programs the engine is tested with.
func TestToolchains(t *testing.T) {
	dir := suite(t, "..", "..", "imports", "wasi_snapshot_preview1", "testdata")
	var files []string
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, ".wasm") {
			files = append(files, path)
		}
		return nil
	})
	if len(files) < 4 {
		t.Fatalf("only %d programs in %s", len(files), dir)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		limits := abi.DefaultLimits()
		limits[abi.LimitModuleBytes], limits[abi.LimitMemoryBytes] = 32<<20, 256<<20
		m, problems := wasm.Read(data, limits)
		if len(problems) > 0 {
			t.Errorf("%s: %v", filepath.Base(f), problems)
			continue
		}
		ranges(t, data, m)
		allocates(t, data)
	}
}

func TestCustomSections(t *testing.T) {
	plain := w.New().Memory(1).Bytes()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ecotone.manifest", ""}), 0, 6).Draw(t, "names")
		module := plain
		var wanted [][]byte
		for i, n := range names {
			content := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, fmt.Sprint("content", i))
			module = wasm.AppendCustom(module, n, content)
			if n == "a" {
				wanted = append(wanted, content)
			}
		}
		got, err := wasm.Custom(module, "a")
		if err != nil || len(got) != len(wanted) {
			t.Fatalf("%d sections, wanted %d: %v", len(got), len(wanted), err)
		}
		for i := range got {
			if !bytes.Equal(got[i], wanted[i]) {
				t.Fatalf("section %d: %x, wanted %x", i, got[i], wanted[i])
			}
		}
		if _, problems := wasm.Read(module, abi.DefaultLimits()); len(problems) > 0 {
			t.Fatal(problems)
		}
		stripped, err := wasm.StripCustom(module, nil)
		if err != nil || !bytes.Equal(stripped, plain) {
			t.Fatalf("stripped to %x: %v", stripped, err)
		}
		kept, err := wasm.StripCustom(module, func(n string) bool { return n != "a" })
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := wasm.Custom(kept, "a"); len(again) != len(wanted) {
			t.Fatalf("%d kept", len(again))
		}
		once, err := wasm.SetCustom(module, "a", []byte("one"))
		if err != nil {
			t.Fatal(err)
		}
		if set, _ := wasm.Custom(once, "a"); len(set) != 1 || string(set[0]) != "one" {
			t.Fatalf("set to %q", set)
		}
	})
	for _, bad := range []string{"", "(module)", "\x00asm\x01\x00\x00\x00\x00\x05"} {
		if _, err := wasm.StripCustom([]byte(bad), nil); abi.CodeOf(err) == abi.CodeInternal || err == nil {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := wasm.SetCustom([]byte(bad), "a", nil); err == nil {
			t.Errorf("%q: set", bad)
		}
	}
}

func TestDigest(t *testing.T) {
	// SHA-256 of 1 as eight bytes, "m", 2 as eight bytes, "wa", as another program computes it.
	const want = "f5e66944e60cce2ae0330c36b8774c931a5b4ce18ed0b03c0ae6c17ed012c7a7"
	if got := wasm.Digest([]byte("m"), []byte("wa")); got != want {
		t.Errorf("%s", got)
	}
	// Bytes that move from one part to the other are another biome.
	seen := map[string]bool{}
	for _, pair := range [][2]string{{"", ""}, {"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}, {"abc", ""}} {
		d := wasm.Digest([]byte(pair[0]), []byte(pair[1]))
		if seen[d] {
			t.Errorf("%q has the digest of another", pair)
		}
		seen[d] = true
	}
}

func TestBoundTables(t *testing.T) {
	limits := abi.DefaultLimits()
	limits[abi.LimitTableEntries] = 100
	build := func(add func(b *w.Builder)) []byte {
		b := w.New()
		add(b)
		b.Func(nil, nil, nil)
		return b.Memory(1).Custom("after", []byte("x")).Bytes()
	}
	for _, c := range []struct {
		name   string
		module []byte
		want   []uint32 // maxima
	}{
		{"none", build(func(*w.Builder) {}), nil},
		{"unbounded", build(func(b *w.Builder) { b.Table(w.FuncRef, 10) }), []uint32{100}},
		{"two", build(func(b *w.Builder) { b.Table(w.FuncRef, 10); b.Table(w.ExternRef, 20, 1<<30) }), []uint32{45, 55}},
		{"smaller", build(func(b *w.Builder) { b.Table(w.FuncRef, 10, 12) }), []uint32{12}},
		{"full", build(func(b *w.Builder) { b.Table(w.FuncRef, 100) }), []uint32{100}},
	} {
		m, problems := wasm.Read(c.module, limits)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		bounded := wasm.BoundTables(c.module, m, limits)
		after, problems := wasm.Read(bounded, limits)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", c.name, problems)
		}
		var got []uint32
		var sum int64
		for i, table := range after.Tables {
			got = append(got, table.Limits.Max)
			sum += int64(table.Limits.Max)
			if table.Elem != m.Tables[i].Elem || table.Limits.Min != m.Tables[i].Limits.Min {
				t.Errorf("%s: table %d changed: %v", c.name, i, table)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || sum > 100 {
			t.Errorf("%s: %s", c.name, diff)
		}
		if err := newEngine(t).takes(bounded); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if x, _ := wasm.Custom(bounded, "after"); len(x) != 1 {
			t.Errorf("%s: what follows the tables is gone", c.name)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	body := bytes.Repeat(w.Cat(w.I32Const(1), w.If(w.I32Const(70000), w.Op(w.OpDrop))), 2000)
	builder := w.New()
	for range 400 {
		builder.Func(nil, nil, nil, body)
	}
	data := builder.Bytes()
	limits := abi.DefaultLimits()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := wasm.Read(data, limits); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

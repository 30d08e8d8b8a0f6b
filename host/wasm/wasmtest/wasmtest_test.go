package wasmtest_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	. "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func compile(t *testing.T, module []byte) wazero.CompiledModule {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	t.Cleanup(func() { _ = r.Close(ctx) })
	c, err := r.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEverySectionTogether(t *testing.T) {
	b := New()
	log := b.Host("log")
	b.WASI("fd_write")
	b.WASI("proc_exit")
	table := b.Table(FuncRef, 2, 4)
	g := b.Global(I32, true, I32Const(-5))
	f := b.Func(Types(I32), nil, Types(I64, F64),
		LocalGet(0), If(Br(0)), Block(Loop(I32Const(0), BrIf(0))),
		I32Const(1), I32Const(0), I32Const(0), Call(log), LocalSet(1),
		F64Const(1.5), Op(OpDrop), GlobalGet(g), GlobalSet(g),
		Block(Block(LocalGet(0), BrTable(0, 1, 0))),
		LocalGet(0), I32Const(0), CallIndirect(b.Type(Types(I32), nil), table),
	)
	b.Start(b.Func(nil, nil, nil))
	b.Capability("run", MemorySize(), I32Const(0), MemoryGrow(), Op(OpI32Add))
	b.Memory(1, 2).ExportMemory().Elem(0, f).Data(8, []byte("hello")).PassiveData([]byte("x")).DataCount(2)
	c := compile(t, b.Custom("note", []byte("hi")).Bytes())
	if n := len(c.ImportedFunctions()); n != 3 {
		t.Errorf("%d imports", n)
	}
	if c.ExportedFunctions()["run"] == nil || c.ExportedMemories()["memory"] == nil {
		t.Error("an export is missing")
	}
}

func TestBiomesCompile(t *testing.T) {
	m := Manifest("test", Provide("test:thing.do@1", "do", abi.ReachOwner), Provide("test:thing.undo@1", "undo", abi.ReachOwner))
	if _, problems := abi.DecodeManifest(MustJSON(m)); len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, module := range map[string][]byte{
		"default": Biome(m),
		"body":    Biome(m, Op(OpUnreachable)),
		"json":    BiomeJSON(MustJSON(m)),
		"echo":    Echo(m),
	} {
		c := compile(t, module)
		if len(c.ExportedFunctions()) != 2 {
			t.Errorf("%s: exports %v", name, c.ExportedFunctions())
		}
	}
}

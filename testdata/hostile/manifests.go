package hostile

import (
	"bytes"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile/internal/manifest"
)

// manifestRows are sound modules whose manifest is not.
var manifestRows = []Module{
	documents("manifest/missing", abi.CodeManifestMissing),
	documents("manifest/twice", abi.CodeManifestInvalid, nothing, nothing),
	documents("manifest/environment", abi.CodeUnknownField, top(`"environments":["environment:org"]`)),
	documents("manifest/environment_in_capability", abi.CodeUnknownField, replace(`"export"`, `"environment":"environment:system","export"`)),
	documents("manifest/grants", abi.CodeUnknownField, top(`"grants":[{"subject":"user:root"}]`)),
	documents("manifest/publisher", abi.CodeUnknownField, top(`"publisher":"system"`)),
	documents("manifest/digest", abi.CodeUnknownField, top(`"digest":"00"`)),
	documents("manifest/key_twice", abi.CodeManifestInvalid, top(`"name":"another"`)),
	documents("manifest/key_case", abi.CodeUnknownField, replace(`"name"`, `"Name"`)),
	documents("manifest/reach_unknown", abi.CodeManifestInvalid, replace(`"reach":"owner"`, `"reach":"global"`)),
	documents("manifest/reach_case", abi.CodeManifestInvalid, replace(`"reach":"owner"`, `"reach":"Owner"`)),
	documents("manifest/reach_missing", abi.CodeManifestInvalid, replace(`,"reach":"owner"`, ``)),
	documents("manifest/reach_number", abi.CodeManifestInvalid, replace(`"reach":"owner"`, `"reach":3`)),
	documents("manifest/classification_unknown", abi.CodeManifestInvalid, replace(`"public"`, `"cosmic"`)),
	documents("manifest/classification_missing", abi.CodeManifestInvalid, replace(`,"outputClassification":"public"`, ``)),
	documents("manifest/ref_upper", abi.CodeManifestInvalid, replace(`"hostile:`, `"Hostile:`)),
	documents("manifest/ref_no_major", abi.CodeManifestInvalid, replace(`.run@1"`, `.run"`)),
	documents("manifest/ref_zero_padded", abi.CodeManifestInvalid, replace(`.run@1"`, `.run@01"`)),
	documents("manifest/ref_newline", abi.CodeManifestInvalid, replace(`.run@1"`, `.run@1\n"`)),
	documents("manifest/ref_path", abi.CodeManifestInvalid, replace(`.run@1"`, `/../run@1"`)),
	documents("manifest/name_path", abi.CodeManifestInvalid, replace(`"name":"hostile`, `"name":"../hostile`)),
	documents("manifest/name_reserved", abi.CodeManifestInvalid, func(string) string {
		return strings.Replace(string(manifest.Default("manifest/name_reserved")), manifest.Name("manifest/name_reserved"), "system", 1)
	}),
	documents("manifest/abi_future", abi.CodeManifestInvalid, replace(`"ecotone_v1"`, `"ecotone_v2"`)),
	documents("manifest/version", abi.CodeManifestInvalid, replace(`"1.0.0"`, `"latest"`)),
	documents("manifest/export_reserved", abi.CodeManifestInvalid, replace(`"run"`, `"ecotone_run"`)),
	documents("manifest/export_memory", abi.CodeManifestInvalid, replace(`"run"`, `"memory"`)),
	documents("manifest/export_missing", abi.CodeExportMissing, replace(`"run"`, `"walk"`)),
	documents("manifest/title_bidi", abi.CodeManifestInvalid, replace(`"title":"`, "\"title\":\"\u202e")),
	documents("manifest/risk_unknown", abi.CodeManifestInvalid, replace(`"low"`, `"none"`)),
	documents("manifest/schema_text", abi.CodeManifestInvalid, replace(`"inputSchema":{}`, `"inputSchema":"{}"`)),
	documents("manifest/schema_missing", abi.CodeManifestInvalid, replace(`"inputSchema":{},`, ``)),
	documents("manifest/provides_nothing", abi.CodeManifestInvalid, func(s string) string {
		return s[:strings.Index(s, `"provides"`)] + `"provides":[]}`
	}),
	documents("manifest/null", abi.CodeManifestInvalid, func(string) string { return "null" }),
	documents("manifest/array", abi.CodeManifestInvalid, func(s string) string { return "[" + s + "]" }),
	documents("manifest/empty", abi.CodeManifestInvalid, func(string) string { return "" }),
	documents("manifest/not_json", abi.CodeManifestInvalid, func(string) string { return "name: yaml" }),
	documents("manifest/not_utf8", abi.CodeManifestInvalid, replace(`"title":"`, "\"title\":\"\xff")),
	documents("manifest/byte_order_mark", abi.CodeManifestInvalid, func(s string) string { return "\ufeff" + s }),
	documents("manifest/trailing", abi.CodeManifestInvalid, func(s string) string { return s + s }),
	documents("manifest/truncated", abi.CodeManifestInvalid, func(s string) string { return s[:len(s)-1] }),
	documents("manifest/deep", abi.CodeManifestInvalid, replace(`"inputSchema":{}`, `"inputSchema":{"a":`+strings.Repeat("[", 50_000)+strings.Repeat("]", 50_000)+`}`)),
	documents("manifest/too_large", abi.CodeManifestInvalid, replace(`"title":"`, `"title":"`+strings.Repeat("x", abi.MaxManifestBytes))),
}

// documents is a sound module with the default manifest once for each edit, edited.
func documents(name string, want abi.Code, edits ...func(string) string) Module {
	m := upload(name, want)
	m.build = func() []byte {
		b := w.New()
		b.Capability("run")
		b.Memory(1).ExportMemory()
		for _, edit := range edits {
			b.Manifest(edit(string(manifest.Default(name))))
		}
		return b.Bytes()
	}
	return m
}

func nothing(s string) string { return s }

// replace replaces every occurrence, and panics when there is none: a row that changes nothing
// would test nothing.
func replace(from, to string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, from) {
			panic("hostile: the manifest has no " + from)
		}
		return strings.ReplaceAll(s, from, to)
	}
}

func top(member string) func(string) string {
	return func(s string) string { return "{" + member + "," + s[1:] }
}

// indexRows use each index space one past its end (S2): valid as soon as anything is added to
// the module.
var indexRows = []Module{
	made("index/type_of_function", abi.CodeModuleInvalid, func(b *w.Builder) { b.RawFunc(1, w.Op(0, w.OpEnd)) }),
	made("index/type_of_import", abi.CodeModuleInvalid, func(b *w.Builder) { b.Import(abi.WASIModule, "sched_yield", w.KindFunc, 1) }),
	made("index/type_of_block", abi.CodeModuleInvalid, body(w.Op(0x02, 2, w.OpEnd))),
	made("index/type_of_indirect_call", abi.CodeModuleInvalid, func(b *w.Builder) {
		b.Table(w.FuncRef, 1)
		b.Func(nil, nil, nil, w.I32Const(0), w.CallIndirect(2, 0))
	}),
	made("index/function_called", abi.CodeModuleInvalid, body(w.Call(2))),
	made("index/function_referred", abi.CodeModuleInvalid, body(w.Op(0xd2, 2, w.OpDrop))),
	made("index/function_exported", abi.CodeModuleInvalid, func(b *w.Builder) { b.ExportFunc("more", 1) }),
	made("index/function_started", abi.CodeModuleInvalid, func(b *w.Builder) { b.Start(1) }),
	made("index/function_in_element", abi.CodeModuleInvalid, func(b *w.Builder) { b.Table(w.FuncRef, 1); b.Elem(0, 1) }),
	made("index/function_in_constant", abi.CodeModuleInvalid, func(b *w.Builder) { b.Global(w.FuncRef, false, w.Op(0xd2, 1)) }),
	made("index/table_of_call", abi.CodeModuleInvalid, func(b *w.Builder) {
		b.Table(w.FuncRef, 1)
		b.Func(nil, nil, nil, w.I32Const(0), w.CallIndirect(0, 1))
	}),
	made("index/table_read", abi.CodeModuleInvalid, body(w.I32Const(0), w.Op(0x25, 0, w.OpDrop))),
	made("index/table_grown", abi.CodeModuleInvalid, body(w.Op(0xd0, w.FuncRef), w.I32Const(0), w.Op(0xfc, 15, 0, w.OpDrop))),
	made("index/table_exported", abi.CodeModuleInvalid, func(b *w.Builder) { b.Export("more", w.KindTable, 0) }),
	made("index/table_of_element", abi.CodeModuleInvalid, func(b *w.Builder) { b.Elem(0) }),
	made("index/memory_exported", abi.CodeModuleInvalid, func(b *w.Builder) { b.Export("more", w.KindMemory, 1) }),
	made("index/global_read", abi.CodeModuleInvalid, func(b *w.Builder) {
		b.Global(w.I64, true, w.I64Const(0))
		b.Func(nil, nil, nil, w.GlobalGet(1), w.Op(w.OpDrop))
	}),
	made("index/global_written", abi.CodeModuleInvalid, body(w.I64Const(1<<40), w.GlobalSet(0))),
	made("index/global_exported", abi.CodeModuleInvalid, func(b *w.Builder) { b.Export("more", w.KindGlobal, 0) }),
	made("index/global_in_constant", abi.CodeModuleInvalid, func(b *w.Builder) {
		b.Global(w.I32, false, w.I32Const(0))
		b.Global(w.I32, false, w.GlobalGet(0))
	}),
	made("index/local", abi.CodeModuleInvalid, func(b *w.Builder) { b.Func(w.Types(w.I32), nil, w.Types(w.I64), w.LocalGet(2), w.Op(w.OpDrop)) }),
	made("index/label", abi.CodeModuleInvalid, body(w.Block(w.Br(2)))),
	made("index/label_of_table", abi.CodeModuleInvalid, body(w.Block(w.I32Const(0), w.BrTable(0, 1, 2)))),
	made("index/data_segment", abi.CodeModuleInvalid, func(b *w.Builder) {
		b.PassiveData(nil).DataCount(1)
		b.Func(nil, nil, nil, w.Op(0xfc, 9, 1))
	}),
	made("index/element_segment", abi.CodeModuleInvalid, body(w.Op(0xfc, 13, 0))),
	made("index/lane", abi.CodeModuleInvalid, body(w.Op(0xfd, 0x0c), bytes.Repeat(w.Op(0), 16), w.Op(0xfd, 0x15, 16, w.OpDrop))),
	made("index/alignment", abi.CodeModuleInvalid, body(w.I32Const(0), w.Op(0x28, 3, 0, w.OpDrop))),
	{
		Name: "index/memory_of_none", Stage: Upload, Want: abi.CodeModuleInvalid,
		build: func() []byte {
			b := w.New()
			b.Capability("run", w.MemorySize())
			return b.Manifest(manifest.Default("index/memory_of_none")).Bytes()
		},
	},
}

func body(instructions ...[]byte) func(*w.Builder) {
	return func(b *w.Builder) { b.Func(nil, nil, nil, instructions...) }
}

package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile/internal/manifest"
)

// generatedRows are modules that are large, broken, or newer than the assembler.
var generatedRows = []Module{
	// Too much of something.
	made("gen/gen_funcs_100k", abi.CodeModuleLimit, functions(100_000)),
	made("gen/gen_funcs_1m", abi.CodeModuleLimit, functions(1_000_000)),
	made("gen/gen_locals_4g", abi.CodeModuleLimit, oneBody(w.Cat(w.LEB(1), w.LEB(0xffffffff), w.Op(w.I32), w.I32Const(0), w.Op(w.OpEnd)))),
	made("gen/gen_locals_overflow", abi.CodeModuleLimit, oneBody(w.Cat(
		w.LEB(3), w.LEB(0xffffffff), w.Op(w.I32), w.LEB(0xffffffff), w.Op(w.I64), w.LEB(0xffffffff), w.Op(w.F64), w.I32Const(0), w.Op(w.OpEnd)))),
	made("gen/gen_br_table_1m", abi.CodeModuleLimit, brTable(1_000_000)),
	made("gen/gen_br_table_100k", abi.CodeModuleLimit, brTable(100_000)),
	made("gen/gen_blocks_nested_20k", abi.CodeModuleLimit, nested(20_000)),
	made("gen/gen_blocks_nested_1m", abi.CodeModuleLimit, nested(1_000_000)),
	made("gen/gen_ifelse_50k", abi.CodeModuleLimit, ifElse(50_000)),
	made("gen/gen_ifelse_9k", abi.CodeModuleLimit, ifElse(9_000)),
	made("gen/gen_body_4mb", abi.CodeModuleLimit, func(b *w.Builder) {
		oneBody(w.Cat(w.LEB(0), bytes.Repeat(w.Op(w.OpNop), 4<<20), w.I32Const(0), w.Op(w.OpEnd)))(b)
	}),
	made("gen/gen_results_1000", abi.CodeExportSignature, results(1000)),
	made("gen/gen_results_1001", abi.CodeModuleLimit, results(1001)),
	made("gen/gen_params_1m", abi.CodeModuleLimit, func(b *w.Builder) { b.Type(bytes.Repeat(w.Op(w.I64), 1_000_000), nil) }),
	made("gen/gen_types_20k", abi.CodeModuleLimit, func(b *w.Builder) {
		b.Repeat(w.SectionType, 20_000, w.Op(0x60, 0, 0))
	}),
	made("gen/gen_imports_1000", abi.CodeModuleLimit, func(b *w.Builder) {
		for range 1000 {
			b.WASI("sched_yield")
		}
	}),
	made("gen/gen_exports_100k", abi.CodeModuleLimit, func(b *w.Builder) {
		f := b.Func(nil, nil, nil)
		for i := range uint32(100_000) {
			b.ExportFunc(string(binary.AppendUvarint([]byte("e"), uint64(i))), f)
		}
	}),
	made("gen/gen_export_name_1mb", abi.CodeModuleLimit, func(b *w.Builder) {
		b.ExportFunc(string(bytes.Repeat([]byte("n"), 1<<20)), b.Func(nil, nil, nil))
	}),
	made("gen/gen_globals_1m", abi.CodeModuleLimit, section(w.SectionGlobal, 1_000_000, w.Cat(w.Op(w.I32, 0), w.I32Const(0), w.Op(w.OpEnd)))),
	made("gen/gen_tables_1000x100k", abi.CodeModuleLimit, section(w.SectionTable, 1000, w.Cat(w.Op(w.FuncRef), w.Limits(100_000)))),
	made("gen/gen_elements_100k", abi.CodeModuleLimit, section(w.SectionElement, 100_000, w.Op(1, 0, 0))),
	made("gen/gen_element_entries_1m", abi.CodeModuleLimit, func(b *w.Builder) {
		b.Entry(w.SectionElement, w.Cat(w.Op(1, 0), w.LEB(1_000_000), make([]byte, 1_000_000)))
	}),
	made("gen/gen_data_200k", abi.CodeModuleLimit, section(w.SectionData, 200_000, w.Op(1, 0))),
	made("gen/gen_custom_100k", abi.CodeModuleLimit, func(b *w.Builder) {
		for range 100_000 {
			b.Section(w.SectionCustom, w.Name(""))
		}
	}),
	made("gen/gen_custom_name_1mb", abi.CodeModuleLimit, func(b *w.Builder) { b.Custom(string(bytes.Repeat([]byte("n"), 1<<20)), nil) }),
	made("gen/gen_module_over_8mib", abi.CodePayloadTooLarge, func(b *w.Builder) { b.Custom("padding", make([]byte, 8<<20)) }),

	// Not a module, or a broken one.
	raw("gen/gen_empty", abi.CodeModuleNotWasm, nil),
	raw("gen/gen_bad_magic", abi.CodeModuleNotWasm, []byte("wasm\x01\x00\x00\x00")),
	raw("gen/gen_bad_version", abi.CodeModuleNotWasm, []byte("\x00asm\x02\x00\x00\x00")),
	raw("gen/gen_truncated_header", abi.CodeModuleMalformed, w.Header()[:6]),
	raw("gen/gen_leb_count_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionType, w.LEB(0xffffffff)))),
	raw("gen/gen_code_count_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionCode, w.LEB(0xffffffff)))),
	raw("gen/gen_import_count_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionImport, w.LEB(0xffffffff)))),
	raw("gen/gen_export_count_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionExport, w.LEB(0xffffffff)))),
	raw("gen/gen_data_len_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionData, w.Cat(w.LEB(1), w.Op(1), w.LEB(0xffffffff))))),
	raw("gen/gen_name_len_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionImport, w.Cat(w.LEB(1), w.LEB(0xffffffff))))),
	raw("gen/gen_br_table_4g", abi.CodeModuleMalformed, w.Cat(w.Header(),
		w.Section(w.SectionType, w.Op(1, 0x60, 0, 0)), w.Section(w.SectionFunction, w.Op(1, 0)),
		w.Section(w.SectionCode, w.Cat(w.LEB(1), w.Vec(w.Cat(w.Op(0, 0x0e), w.LEB(0xffffffff), w.Op(w.OpEnd))))))),
	raw("gen/gen_section_size_4g", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Op(w.SectionType), w.LEB(0xffffffff))),
	raw("gen/gen_section_order", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionFunction, w.LEB(0)), w.Section(w.SectionType, w.LEB(0)))),
	raw("gen/gen_section_twice", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(w.SectionType, w.LEB(0)), w.Section(w.SectionType, w.LEB(0)))),
	raw("gen/gen_section_unknown", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Section(200, nil))),
	raw("gen/gen_leb_overlong", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Op(w.SectionType), w.LEBPadded(1, 6), w.LEB(0))),
	raw("gen/gen_leb_overflow", abi.CodeModuleMalformed, w.Cat(w.Header(), w.Op(w.SectionType, 0x81, 0x80, 0x80, 0x80, 0x10), w.LEB(0))),
	raw("gen/gen_trailing_garbage", abi.CodeModuleMalformed, w.Cat(sound("gen/gen_trailing_garbage"), []byte("garbage"))),
	raw("gen/gen_truncated_code", abi.CodeModuleMalformed, sound("gen/gen_truncated_code")[:49]),
	made("gen/gen_counts_differ", abi.CodeModuleMalformed, func(b *w.Builder) { b.Entry(w.SectionFunction, w.LEB(0)) }),
	made("gen/gen_data_count_differs", abi.CodeModuleMalformed, func(b *w.Builder) { b.DataCount(7) }),
	made("gen/gen_no_data_count", abi.CodeModuleMalformed, func(b *w.Builder) {
		b.PassiveData(nil)
		b.Func(nil, nil, nil, w.Op(0xfc, 9, 0))
	}),
	made("gen/gen_unknown_opcode", abi.CodeModuleMalformed, func(b *w.Builder) { b.Func(nil, nil, nil, w.Op(0xff)) }),
	made("gen/gen_body_no_end", abi.CodeModuleMalformed, func(b *w.Builder) { b.RawFunc(b.Type(nil, nil), w.Op(0, w.OpNop)) }),
	made("gen/gen_body_after_end", abi.CodeModuleMalformed, func(b *w.Builder) { b.Func(nil, nil, nil, w.Op(w.OpEnd, w.OpNop)) }),
	made("gen/gen_else_without_if", abi.CodeModuleMalformed, func(b *w.Builder) { b.Func(nil, nil, nil, w.Op(w.OpElse)) }),
	// To the specification this is v128.load; to the engine it is i16x8.abs and unreachable.
	made("gen/gen_vector_overlong", abi.CodeModuleMalformed, func(b *w.Builder) {
		b.Func(nil, nil, nil, w.I32Const(0), w.Op(0xfd, 0x80, 0x00, 4, 0), w.Op(w.OpDrop))
	}),
	made("gen/gen_export_twice", abi.CodeModuleInvalid, func(b *w.Builder) {
		f := b.Func(nil, nil, nil)
		b.ExportFunc("twin", f).ExportFunc("twin", f)
	}),
	made("gen/gen_names_not_utf8", abi.CodeModuleMalformed, func(b *w.Builder) { b.ExportFunc("\xff\xfe", b.Func(nil, nil, nil)) }),
	raw("gen/gen_is_wat", abi.CodeModuleText, []byte("  ;; a module\n(module (memory (export \"memory\") 1))")),
	raw("gen/gen_is_text", abi.CodeModuleNotWasm, []byte("hello, world")),
	raw("gen/gen_is_gzip", abi.CodeModuleNotWasm, gzipped(w.Header())),
	raw("gen/gen_is_zip", abi.CodeModuleNotWasm, []byte("PK\x03\x04rest")),
	raw("gen/gen_is_tar", abi.CodeModuleNotWasm, w.Cat(make([]byte, 257), []byte("ustar\x0000"), make([]byte, 512))),
	raw("gen/gen_is_elf", abi.CodeModuleNotWasm, []byte("\x7fELF\x02\x01\x01")),
	raw("gen/gen_is_html", abi.CodeModuleNotWasm, []byte("<!DOCTYPE html><title>404</title>")),

	// Names and debug information that are large or lie: nothing reads them.
	{
		Name: "gen/gen_name_64k_func", Stage: Invoke, Calls: []Step{{Code: abi.CodeGuestTrap}},
		build: func() []byte {
			return trapping("gen/gen_name_64k_func").Custom("name", w.Cat(w.Op(1), w.Vec(w.Cat(w.LEB(1), w.LEB(0), w.Name(string(bytes.Repeat([]byte("n"), 64<<10))))))).Bytes()
		},
	},
	{
		Name: "gen/gen_name_injection", Stage: Invoke, Calls: []Step{{Code: abi.CodeGuestTrap}},
		build: func() []byte {
			return trapping("gen/gen_name_injection").Custom("name", w.Cat(w.Op(1), w.Vec(w.Cat(w.LEB(1), w.LEB(0), w.Name("evil\nINJECTED: all is well\x1b[2J"))))).Bytes()
		},
	},
	{
		Name: "gen/gen_name_count_4g", Stage: Invoke, Calls: []Step{{Code: abi.CodeGuestTrap}},
		build: func() []byte {
			return trapping("gen/gen_name_count_4g").Custom("name", w.Cat(w.Op(1), w.Vec(w.LEB(0xffffffff)))).Bytes()
		},
	},
	{
		Name: "gen/gen_dwarf_bomb", Stage: Invoke, Calls: []Step{{Code: abi.CodeGuestTrap}},
		build: func() []byte {
			b := trapping("gen/gen_dwarf_bomb")
			for _, name := range []string{".debug_info", ".debug_line", ".debug_abbrev", ".debug_ranges", ".debug_str"} {
				b.Custom(name, bytes.Repeat([]byte{0xff, 0xff, 0xff, 0x7f, 1, 0x11, 0xff}, 16<<10))
			}
			return b.Bytes()
		},
	},

	// Proposals the assembler does not know.
	raw("feat/component_min", abi.CodeModuleComponent, []byte("\x00asm\x0d\x00\x01\x00")),
	made("feat/gc_struct", abi.CodeModuleFeature, func(b *w.Builder) { b.Entry(w.SectionType, w.Op(0x5f, 1, w.I32, 1)) }),
	made("feat/gc_recursive", abi.CodeModuleFeature, func(b *w.Builder) { b.Entry(w.SectionType, w.Op(0x4e, 1, 0x60, 0, 0)) }),
	made("feat/gc_alloc_bomb", abi.CodeModuleFeature, func(b *w.Builder) {
		b.Func(nil, nil, nil, w.Loop(w.I32Const(1<<20), w.Op(0xfb, 7, 0, w.OpDrop), w.Br(0)))
	}),
	made("feat/stack_switching", abi.CodeModuleFeature, func(b *w.Builder) { b.Entry(w.SectionType, w.Op(0x5d, 0)) }),
	made("feat/stack_switching_resume", abi.CodeModuleFeature, func(b *w.Builder) { b.Func(nil, nil, nil, w.Op(0xe3, 0, 0)) }),
	made("feat/function_references", abi.CodeModuleFeature, func(b *w.Builder) { b.Func(nil, nil, nil, w.Op(0x14, 0)) }),
	made("feat/function_references_local", abi.CodeModuleFeature, func(b *w.Builder) { b.Func(nil, nil, w.Types(0x63), w.Op(0)) }),
	made("feat/table_initializer", abi.CodeModuleFeature, func(b *w.Builder) { b.Entry(w.SectionTable, w.Op(0x40, 0, w.FuncRef, 0, 1, 0xd0, w.FuncRef, w.OpEnd)) }),
	made("feat/exnref_global", abi.CodeModuleFeature, func(b *w.Builder) { b.Global(0x69, false, w.Op(0xd0, 0x69)) }),
	made("feat/wide_arithmetic", abi.CodeModuleFeature, func(b *w.Builder) { b.Func(nil, nil, nil, w.Op(0xfc, 19)) }),
	made("feat/shared_table", abi.CodeModuleFeature, func(b *w.Builder) { b.Entry(w.SectionTable, w.Op(w.FuncRef, 3, 1, 1)) }),
	made("feat/tag_import", abi.CodeModuleFeature, func(b *w.Builder) {
		t := b.Type(nil, nil)
		b.Entry(w.SectionImport, w.Cat(w.Name("env"), w.Name("tag"), w.Op(4, 0), w.LEB(uint64(t))))
	}),
}

// made is an upload row whose module is a sound one with something added.
func made(name string, want abi.Code, add func(*w.Builder)) Module {
	m := upload(name, want)
	m.build = func() []byte {
		b := w.New()
		add(b)
		return finish(b, name)
	}
	return m
}

// raw is an upload row of bytes as they are.
func raw(name string, want abi.Code, b []byte) Module {
	m := upload(name, want)
	m.build = func() []byte { return b }
	return m
}

// finish makes what the ABI asks for out of what is there: run is the last function.
func finish(b *w.Builder, name string) []byte {
	b.Capability("run")
	return b.Memory(1).ExportMemory().Manifest(manifest.Default(name)).Bytes()
}

func sound(name string) []byte { return finish(w.New(), name) }

// trapping is a biome that traps, in its first function.
func trapping(name string) *w.Builder {
	b := w.New()
	b.Capability("run", w.Call(b.Func(nil, nil, nil, w.Op(w.OpUnreachable))), w.I32Const(0))
	return b.Memory(1).ExportMemory().Manifest(manifest.Default(name))
}

// oneBody adds a function () -> i32 with a body to the byte.
func oneBody(body []byte) func(*w.Builder) {
	return func(b *w.Builder) { b.RawFunc(b.Type(nil, w.Types(w.I32)), body) }
}

func functions(n int) func(*w.Builder) {
	return func(b *w.Builder) {
		t := b.Type(nil, nil)
		b.Repeat(w.SectionFunction, n, w.LEB(uint64(t))).Repeat(w.SectionCode, n, w.Vec(w.Op(0, w.OpEnd)))
	}
}

func brTable(n int) func(*w.Builder) {
	return func(b *w.Builder) {
		b.Func(nil, nil, nil, w.I32Const(0), w.Op(0x0e), w.LEB(uint64(n)), make([]byte, n+1))
	}
}

func nested(n int) func(*w.Builder) {
	return func(b *w.Builder) {
		b.Func(nil, nil, nil, bytes.Repeat(w.Op(0x02, w.BlockVoid), n), bytes.Repeat(w.Op(w.OpEnd), n))
	}
}

func ifElse(n int) func(*w.Builder) {
	return func(b *w.Builder) {
		b.Func(nil, nil, nil, bytes.Repeat(w.Cat(w.I32Const(1), w.Op(0x04, w.BlockVoid, w.OpElse, w.OpEnd)), n))
	}
}

// results exports run a second time under a name of the manifest: as a function with n results.
func results(n int) func(*w.Builder) {
	return func(b *w.Builder) {
		f := b.Func(nil, bytes.Repeat(w.Op(w.I32), n), nil, bytes.Repeat(w.I32Const(0), n))
		b.ExportFunc("_initialize", f)
	}
}

// section adds n copies of an item to a vector section.
func section(id byte, n int, item []byte) func(*w.Builder) {
	return func(b *w.Builder) {
		b.Repeat(id, n, item)
	}
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

package admission_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

const ref = "test:thing.do@1"

func manifest(reach abi.Reach) *abi.Manifest { return w.Manifest("test", w.Provide(ref, "run", reach)) }

func codes(r *admission.Report) []abi.Code {
	var out []abi.Code
	for _, p := range r.Problems {
		out = append(out, p.Code)
	}
	return out
}

// importing is a biome that imports one function and declares a reach.
func importing(declared abi.Reach, add func(*w.Builder)) *admission.Report {
	b := w.New()
	add(b)
	b.Capability("run")
	return admission.Inspect(b.Memory(1).ExportMemory().Manifest(manifest(declared)).Bytes(), uploadLimits())
}

// The two tables are the only doors (H1): every function of each is admitted exactly under
// the reaches that cover it (X10), every other function of WASI preview 1 is refused by name.
func TestEveryImport(t *testing.T) {
	for _, declared := range abi.Reaches() {
		for _, f := range abi.Functions() {
			r := importing(declared, func(b *w.Builder) { b.Host(f.Name) })
			want := []abi.Code(nil)
			if !f.Reach.Within(declared) {
				want = []abi.Code{abi.CodeImportAboveReach}
			}
			if diff := cmp.Diff(want, codes(r)); diff != "" {
				t.Errorf("%s under %s: %s", f.Name, declared, diff)
			}
			if len(r.Imports) != 1 || r.Imports[0].Reach != f.Reach || r.Reach != f.Reach || !r.Imports[0].Known || r.Declared != declared {
				t.Errorf("%s under %s: %+v", f.Name, declared, r.Imports)
			}
		}
	}
	for _, f := range abi.NativeWASI() {
		if r := importing(abi.ReachOwner, func(b *w.Builder) { b.WASI(f.Name) }); !r.Accepted || !r.Imports[0].Known || r.Reach.Valid() {
			t.Errorf("%s: %v", f.Name, r.Problems)
		}
	}
	// PF-B13 for the sockets among them.
	for _, name := range strings.Fields(`fd_advise fd_allocate fd_datasync fd_fdstat_set_rights fd_filestat_get fd_filestat_set_size
		fd_filestat_set_times fd_pread fd_pwrite fd_readdir fd_renumber fd_sync fd_tell path_create_directory path_filestat_get
		path_filestat_set_times path_link path_open path_readlink path_remove_directory path_rename path_symlink path_unlink_file
		proc_raise sock_accept sock_recv sock_send sock_shutdown`) {
		if f, known := abi.WASIFunctionByName(name); !known || f.Native {
			t.Errorf("%s is in the subset", name)
		}
		r := importing(abi.ReachPlatform, func(b *w.Builder) {
			b.ImportFunc(abi.WASIModule, name, w.Types(w.I32), w.Types(w.I32))
		})
		if diff := cmp.Diff([]abi.Code{abi.CodeImportUnknown}, codes(r)); diff != "" || !strings.Contains(r.Problems[0].Message, name) || r.Problems[0].Hint == "" {
			t.Errorf("%s: %v", name, r.Problems)
		}
	}
}

// Every import of every kind but a function is refused, whatever its name.
func TestOnlyFunctionsAreImported(t *testing.T) {
	for _, kind := range []struct {
		name string
		desc []byte
		kind byte
	}{
		{"table", w.Cat(w.Op(w.FuncRef), w.Limits(1)), w.KindTable},
		{"memory", w.Limits(1), w.KindMemory},
		{"global", w.Op(w.I32, 0), w.KindGlobal},
	} {
		for _, module := range []string{abi.Module, abi.WASIModule, "env"} {
			for _, name := range []string{"output", "fd_write", "memory"} {
				r := importing(abi.ReachPlatform, func(b *w.Builder) { b.Import(module, name, kind.kind, kind.desc...) })
				if r.Accepted || r.Imports[0].Known {
					t.Errorf("%s %s.%s: accepted", kind.name, module, name)
				}
			}
		}
	}
}

func TestAccepted(t *testing.T) {
	b := w.New()
	b.Host("output")
	b.WASI("proc_exit")
	b.ExportFunc("_initialize", b.Func(nil, nil, nil))
	b.Capability("run")
	b.ExportFunc("helper", b.Func(w.Types(w.I32), nil, nil)) // exports outside the contract are let be
	module := b.Memory(1, 2).ExportMemory().Data(3, []byte("hi")).Manifest(manifest(abi.ReachOwner)).Bytes()
	r := admission.Inspect(module, uploadLimits())
	if err := r.Err(); err != nil || !r.Accepted {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&admission.Memory{Min: 64 << 10, Max: 128 << 10}, r.Memory); diff != "" {
		t.Error(diff)
	}
	if !r.Initialize || r.Size != len(module) || r.Manifest.Name != "test" || len(r.Warnings) > 0 || r.Module == nil {
		t.Errorf("%+v", r)
	}
	if want := wasm.Digest(r.ManifestBytes, module); r.Digest != want || len(r.ManifestBytes) == 0 {
		t.Errorf("digest %s, want %s", r.Digest, want)
	}
	if s := r.Statistics; s.Functions != 3 || s.DataSegments != 1 || s.DataBytes != 2 || s.CustomSections != 1 || s.Types != 4 {
		t.Errorf("statistics %+v", s)
	}
	if diff := cmp.Diff([]admission.Export{
		{Name: "_initialize", Kind: "function", Signature: "() -> ()"},
		{Name: "run", Kind: "function", Signature: "() -> i32", Capability: ref},
		{Name: "helper", Kind: "function", Signature: "(i32) -> ()"},
		{Name: "memory", Kind: "memory"},
	}, r.Exports); diff != "" {
		t.Error(diff)
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "accepted.json", string(raw)+"\n")
	compareGolden(t, "accepted.txt", text.String())
}

// A module with everything wrong is told everything, in the order of the bytes.
func TestAllProblemsAtOnce(t *testing.T) {
	b := w.New()
	b.ImportFunc("env", "abort", nil, nil)
	b.ImportFunc(abi.Module, "output", nil, nil)
	b.Host("http_fetch")
	b.ImportFunc(abi.WASIModule, "path_open", nil, nil)
	b.ExportFunc("_start", b.Func(nil, nil, nil))
	b.ExportFunc("_initialize", b.Func(nil, w.Types(w.I32), nil, w.I32Const(0)))
	b.ExportFunc("ecotone_x", 4)
	b.ExportFunc("run", 4)
	b.Start(4).Memory(1).Data(-1, []byte("x"))
	r := admission.Inspect(b.Manifest(manifest(abi.ReachOwner)).Bytes(), uploadLimits())
	got := codes(r)
	slices.Sort(got)
	want := []abi.Code{
		abi.CodeExportMissing, abi.CodeExportSignature, abi.CodeExportSignature, abi.CodeImportAboveReach, abi.CodeImportSignature,
		abi.CodeImportUnknown, abi.CodeImportUnknown, abi.CodeModuleInvalid, abi.CodeNameReserved, abi.CodeStartRefused, abi.CodeStartRefused,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v\n%s", r.Problems, diff)
	}
	if !slices.IsSortedFunc(r.Problems, func(a, b admission.Problem) int { return a.Offset - b.Offset }) {
		t.Error("problems are not in the order of their offsets")
	}
	if e := r.Err(); !strings.Contains(e.Message, "11 reasons") {
		t.Error(e)
	}
	var text bytes.Buffer
	_ = r.WriteText(&text)
	compareGolden(t, "refused.txt", text.String())
}

// What cannot be read is not called missing.
func TestUnreadIsNotMissing(t *testing.T) {
	b := w.New()
	for range 70 {
		b.WASI("sched_yield") // over the limit: imports and what their number decides are unknown
	}
	b.Capability("run")
	r := admission.Inspect(b.Memory(1).ExportMemory().Manifest(manifest(abi.ReachOwner)).Bytes(), uploadLimits())
	if diff := cmp.Diff([]abi.Code{abi.CodeModuleLimit}, codes(r)); diff != "" {
		t.Errorf("%v", r.Problems)
	}
	b = w.New()
	b.Capability("run")
	b.Memory(1).ExportMemory()
	for range 70 {
		b.Custom("x", nil)
	}
	r = admission.Inspect(b.Manifest(manifest(abi.ReachOwner)).Bytes(), uploadLimits())
	if diff := cmp.Diff([]abi.Code{abi.CodeModuleLimit}, codes(r)); diff != "" {
		t.Errorf("%v", r.Problems)
	}
}

// PF-H3: the schema compiler of the caller is asked about every schema, and its words are kept.
func TestSchemas(t *testing.T) {
	m := manifest(abi.ReachOwner)
	m.Provides[0].InputSchema = json.RawMessage(`{"type":"nothing"}`)
	m.Provides[0].OutputSchema = json.RawMessage(`{"$ref":"file:///etc/passwd"}`)
	in := admission.Inspector{Limits: uploadLimits(), Schema: func(raw json.RawMessage) error {
		if bytes.Contains(raw, []byte("$ref")) {
			return errors.New("/srv/private: cannot load")
		}
		return abi.Errorf(abi.CodeSchemaInvalid, "no such type").At("/type").WithHint("use a type")
	}}
	r := in.Inspect(wasm.Original{Module: w.Biome(m)})
	at := r.Problems[0].Offset
	want := []admission.Problem{
		{Code: abi.CodeSchemaInvalid, Offset: at, Section: "custom", Pointer: "/provides/0/inputSchema/type", Message: "no such type", Hint: "use a type"},
		{Code: abi.CodeSchemaInvalid, Offset: at, Section: "custom", Pointer: "/provides/0/outputSchema", Message: "the schema does not compile"},
	}
	if diff := cmp.Diff(want, r.Problems); diff != "" {
		t.Error(diff) // PF-H4: the other error's text stays inside
	}
}

func TestWarnings(t *testing.T) {
	topics := func(r *admission.Report) (out []string) {
		if !r.Accepted {
			t.Error(r.Problems)
		}
		for _, wn := range r.Warnings {
			out = append(out, wn.Topic)
		}
		return out
	}
	if got := topics(importing(abi.ReachPlatform, func(b *w.Builder) { b.Host("output") })); !slices.Equal(got, []string{"reach-unused"}) {
		t.Error(got)
	}
	if got := topics(importing(abi.ReachPlatform, func(b *w.Builder) { b.Host("capability_invoke") })); !slices.Equal(got, []string{"requires-empty"}) {
		t.Error(got)
	}
	if got := topics(importing(abi.ReachIntegration, func(b *w.Builder) { b.Host("http_fetch"); b.Host("secret_hmac") })); !slices.Equal(got, []string{"requires-empty", "requires-empty"}) {
		t.Error(got)
	}
}

func TestUploadLimits(t *testing.T) {
	configured := abi.DefaultLimits()
	configured[abi.LimitFunctions] = 7
	got := admission.UploadLimits(configured)
	if got[abi.LimitFunctions] != 7 || got[abi.LimitMemoryBytes] != abi.LimitMemoryBytes.Info().Hard {
		t.Error(got)
	}
	// PF-D19: a large maximum is no reason to refuse, a large minimum is one.
	small := abi.DefaultLimits()
	build := func(pages ...uint32) []byte {
		b := w.New()
		b.Capability("run")
		return b.Memory(pages[0], pages[1:]...).ExportMemory().Manifest(manifest(abi.ReachOwner)).Bytes()
	}
	if r := admission.Inspect(build(1, 65536), small); !r.Accepted {
		t.Error(r.Problems)
	}
	if r := admission.Inspect(build(257), small); !slices.Equal(codes(r), []abi.Code{abi.CodeMemoryLimit}) {
		t.Error(r.Problems)
	}
	if r := admission.Inspect(build(257), uploadLimits()); !r.Accepted {
		t.Error(r.Problems)
	}
}

// PF-D20: refusing and accepting modules without end keeps nothing.
func TestFlatMemory(t *testing.T) {
	names := []string{"imp_case_confusable", "gen/gen_locals_4g", "manifest/deep", "log_flood", "gen/gen_custom_100k", "names_control"}
	round := func(n int) uint64 {
		for range n {
			for _, name := range names {
				admission.Inspect(hostile.Named(name).Bytes(), uploadLimits())
			}
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := round(3)
	if after := round(30); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d", before, after)
	}
}

// Inspecting is pure: the same bytes give the same report, and stay as they are.
func TestPure(t *testing.T) {
	for _, m := range hostile.Modules() {
		module := m.Bytes()
		if len(module) > 64<<10 {
			continue
		}
		before := bytes.Clone(module)
		first, second := admission.Inspect(module, uploadLimits()), admission.Inspect(module, uploadLimits())
		if !bytes.Equal(module, before) {
			t.Errorf("%s: the bytes changed", m.Name)
		}
		a, _ := json.Marshal(first)
		b, _ := json.Marshal(second)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two reports", m.Name)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, m := range hostile.Modules() {
		if b := m.Bytes(); len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Add(w.Echo(manifest(abi.ReachOwner)))
	limits := uploadLimits()
	f.Fuzz(func(t *testing.T, module []byte) {
		r := admission.Inspect(module, limits)
		if r.Accepted != (r.Err() == nil) || r.Accepted != (len(r.Problems) == 0) {
			t.Fatal("the report contradicts itself")
		}
		for _, p := range r.Problems {
			if p.Offset < 0 || p.Offset > len(module) {
				t.Fatalf("%+v", p)
			}
		}
		if r.Accepted && (r.Manifest == nil || r.Digest == "" || len(r.Module.Memories) != 1) {
			t.Fatalf("accepted without what it needs: %+v", r)
		}
		presentable(t, "fuzzed", r)
	})
}

package build

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// everything builds every first-party biome and every guest for tests.
func everything(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"echo", "leaky", "probe", "slow", "warm"} {
		if all[name], err = Guest(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// copyTree copies what a biome is built from to another folder, as another checkout has it.
func copyTree(t *testing.T, paths ...string) string {
	t.Helper()
	from, to := root(t), t.TempDir()
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(from, path), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(from, name)
			if err != nil {
				return err
			}
			target := filepath.Join(to, rel)
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return err
			}
			return os.WriteFile(target, data, 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Two checkouts in different folders, and a caller with flags of its own, make the same bytes.
func TestReproducible(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=other")
	first, err := (&Builder{Cache: t.TempDir()}).Go(t.Context(), filepath.Join(root(t), "biomes", "notes"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := copyTree(t, "go.mod", "go.sum", "abi", "guest", "biomes/notes")
	second, err := (&Builder{Cache: t.TempDir()}).Go(t.Context(), filepath.Join(elsewhere, "biomes", "notes"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("%d and %d bytes, and they differ", len(first), len(second))
	}
	if bytes.Contains(first, []byte(elsewhere)) || bytes.Contains(first, []byte(root(t))) {
		t.Error("the module names the folder it was built in")
	}
}

func TestCache(t *testing.T) {
	dir := copyTree(t, "go.mod", "go.sum", "abi", "guest", "testdata/guests/echo")
	biome := filepath.Join(dir, "testdata", "guests", "echo")
	b := &Builder{Cache: filepath.Join(t.TempDir(), "made", "here")}
	built := func() string {
		t.Helper()
		module, err := b.Go(t.Context(), biome)
		if err != nil {
			t.Fatal(err)
		}
		return string(module)
	}
	kept := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(b.Cache, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	first := built()
	if len(kept()) != 1 {
		t.Fatalf("the cache has %v", kept())
	}
	// A mark in the cached file shows that the second build is not one.
	if err := os.WriteFile(kept()[0], []byte("mark"), 0o644); err != nil {
		t.Fatal(err)
	}
	if built() != "mark" {
		t.Error("nothing changed, and it was built again")
	}
	for _, change := range []struct{ file, old, new string }{
		{"testdata/guests/echo/main.go", "ECHO_FAILED", "ECHO_BROKEN"},
		{"testdata/guests/echo/manifest.json", "1.0.0", "1.0.1"},
		{"guest/core/core.go", `"FAILED"`, `"BROKEN"`}, // a dependency
	} {
		path := filepath.Join(dir, change.file)
		source, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(source, []byte(change.old)) {
			t.Fatal(change.file, err)
		}
		if err := os.WriteFile(path, bytes.Replace(source, []byte(change.old), []byte(change.new), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := built(); got == "mark" || got == first {
			t.Errorf("%s changed, and the old module came back", change.file)
		}
	}
}

func TestRefuses(t *testing.T) {
	dir := copyTree(t, "go.mod", "go.sum", "abi", "guest", "testdata/guests/echo")
	biome := filepath.Join(dir, "testdata", "guests", "echo")
	manifest, err := os.ReadFile(filepath.Join(biome, ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	b := &Builder{Cache: t.TempDir()}
	for name, doc := range map[string]string{
		"unknown field": strings.Replace(string(manifest), `"name"`, `"environment": "org", "name"`, 1), // X4
		"no export":     strings.Replace(string(manifest), `"export": "echo"`, `"export": "nowhere_to_be_found"`, 1),
		"no manifest":   "",
	} {
		if doc == string(manifest) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if err := os.WriteFile(filepath.Join(biome, ManifestFile), []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
		if module, err := b.Go(t.Context(), biome); err == nil || module != nil {
			t.Errorf("%s: it was built", name)
		}
	}
	if err := os.WriteFile(filepath.Join(biome, ManifestFile), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(biome, "broken.go"), []byte("package main\nvar x int = \"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Go(t.Context(), biome); err == nil || !strings.Contains(err.Error(), "broken.go") {
		t.Errorf("broken source: %v", err)
	}
	if _, err := Biome(t.Context(), "../guest"); err == nil {
		t.Error("a path is taken for a name")
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := (&Builder{}).Write(t.Context(), dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		info, err := os.Stat(filepath.Join(dir, name+".wasm"))
		if err != nil || info.Size() < 1<<20 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// Names are the folders that have a manifest and a Go program: the others are committed as they were built.
func TestNames(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(root(t), "biomes", "*", ManifestFile))
	found = slices.DeleteFunc(found, func(manifest string) bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(manifest), "main.go"))
		return err != nil
	})
	if err != nil || len(found) != len(Names()) {
		t.Errorf("%d biomes, %d names (%v)", len(found), len(Names()), err)
	}
}

// Admission accepts every module as it is: imports of the contract only and with its types,
// none above the declared reach, every export the manifest names, within the default limits.
func TestModulesAreAdmitted(t *testing.T) {
	for name, module := range everything(t) {
		report := admission.Inspect(module, abi.DefaultLimits())
		for _, p := range report.Problems {
			t.Errorf("%s at %#x: %s: %s", name, p.Offset, p.Code, p.Message)
		}
		if !report.Accepted || report.Manifest == nil || report.Manifest.Name != name || !report.Initialize {
			t.Errorf("%s is not accepted as the reactor it is", name)
			continue
		}
		imported := map[string]bool{}
		for _, i := range report.Imports {
			if i.Module == abi.Module {
				imported[i.Name] = true
			}
		}
		for _, row := range abi.Functions() {
			if name == "probe" && !imported[row.Name] { // H1: it tries every door
				t.Errorf("the probe does not try %s", row.Name)
			}
		}
		if report.Reach != report.Declared {
			t.Errorf("%s declares reach %s and needs %s", name, report.Declared, report.Reach)
		}
	}
}

func wasiTypes(row abi.WASIFunction) (params, results []api.ValueType) {
	for _, p := range row.Params {
		params = append(params, byte(p.Type))
	}
	if !row.NoResult {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results
}

// WASI preview 1 is there whole, with the signatures of wasi_snapshot_preview1, as the engine knows them.
func TestWASISignatures(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	compiled, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exported := compiled.ExportedFunctions()
	for _, row := range abi.WASIFunctions() {
		f := exported[row.Name]
		if f == nil {
			t.Errorf("%s is no function of WASI", row.Name)
			continue
		}
		want, results := wasiTypes(row)
		if !bytes.Equal(f.ParamTypes(), want) || !bytes.Equal(f.ResultTypes(), results) {
			t.Errorf("%s has type %v -> %v, the table says %v -> %v", row.Name, f.ParamTypes(), f.ResultTypes(), want, results)
		}
	}
}

func TestAppendCustom(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCustomSections(true))
	defer r.Close(ctx)
	for _, size := range []int{1, 127, 128, 16_383, 16_384, 200_000} {
		payload := bytes.Repeat([]byte{7}, size)
		module := wasm.AppendCustom([]byte("\x00asm\x01\x00\x00\x00"), "a.name", payload)
		compiled, err := r.CompileModule(ctx, module)
		if err != nil {
			t.Errorf("%d bytes: %v", size, err)
			continue
		}
		sections := compiled.CustomSections()
		if len(sections) != 1 || sections[0].Name() != "a.name" || !bytes.Equal(sections[0].Data(), payload) {
			t.Errorf("%d bytes do not come back", size)
		}
	}
}

// The manifest in a module is the file's, without its white space.
func TestManifestIsTheFiles(t *testing.T) {
	module, err := Biome(t.Context(), "notes")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(root(t), "biomes", "notes", ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := json.Compact(&small, file); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(module, small.Bytes()) {
		t.Error("it is not at the module's end")
	}
}

package host_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func TestMain(m *testing.M) {
	compile.RunIfChild()
	goleak.VerifyTestMain(m)
}

// shelf keeps admitted modules, as the gateway does.
type shelf struct {
	mu      sync.Mutex
	modules map[string][]byte
	asked   int
}

// gets is how often a module was asked for.
func (s *shelf) gets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *shelf) get(_ context.Context, digest string) (wasm.Original, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if m, ok := s.modules[digest]; ok {
		return wasm.Original{Module: m}, nil
	}
	return wasm.Original{}, abi.Errorf(abi.CodeNotFound, "no such biome")
}

type rig struct {
	t     testing.TB
	dir   string
	host  *host.Host
	shelf *shelf
	pool  *engine.Pooled
}

// newRig is a host over a pool that verifies what it lends.
func newRig(t testing.TB, memory int64, change ...func(*abi.Limits)) *rig {
	t.Helper()
	pool := engine.NewPooled(engine.PoolOptions{Verify: true})
	t.Cleanup(func() {
		pool.Close()
		if s := pool.Stats(); s.Mismatches != 0 || s.Bytes != 0 {
			t.Errorf("the pool at the end: %+v", s)
		}
	})
	r := newRigOf(t, memory, pool, change...)
	r.pool = pool
	return r
}

func newRigOf(t testing.TB, memory int64, pool engine.Pool, change ...func(*abi.Limits)) *rig {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	r := &rig{t: t, dir: t.TempDir(), shelf: &shelf{modules: map[string][]byte{}}}
	limits := abi.DefaultLimits()
	for _, f := range change {
		f(&limits)
	}
	h, err := host.New(context.Background(), host.Options{
		Dir: r.dir, Key: key, Limits: limits, Source: r.shelf.get, Memory: memory, Pool: pool,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.host = h
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// admit puts a module through admission and on the shelf.
func (r *rig) admit(module []byte) string {
	r.t.Helper()
	report, err := r.host.Admit(patience(r.t), wasm.Original{Module: module})
	if err != nil {
		r.t.Fatalf("%v %+v", err, report.Problems)
	}
	return r.keep(report, module)
}

func (r *rig) keep(report *admission.Report, module []byte) string {
	r.shelf.mu.Lock()
	r.shelf.modules[report.Digest] = module
	r.shelf.mu.Unlock()
	return report.Digest
}

func (r *rig) run(org, digest, export, input string, change ...func(*authority.Spec)) host.Outcome {
	r.t.Helper()
	spec := authority.Spec{
		Invocation: "01J0000000000000000000TEST", Org: org, Digest: digest, Export: export, Capability: "test:it.run@1",
		Reach: abi.ReachOwner, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated, Limits: abi.DefaultLimits(),
	}
	for _, f := range change {
		f(&spec)
	}
	inv := boundary.New(boundary.Spec{
		Authority: authority.New(spec, func() *abi.Error { return nil }),
		Input:     []byte(input),
	})
	return r.host.Run(patience(r.t), inv)
}

func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func echo(name string) []byte {
	return w.Echo(w.Manifest(name, w.Provide("test:it.run@1", "run", abi.ReachOwner)))
}

func TestAdmitAndRun(t *testing.T) {
	r := newRig(t, 0)
	digest := r.admit(echo("one"))
	for range 3 {
		if o := r.run("acme", digest, "run", `{"n":1}`); string(o.Output) != `{"n":1}` {
			t.Fatalf("%v", o.Err)
		}
	}
	if r.host.Started() != 3 || r.host.Trials() != 1 {
		t.Errorf("%d started, %d trials", r.host.Started(), r.host.Trials())
	}
	if n := compile.ParentCompiles(); n != 0 {
		t.Errorf("the parent compiled %d times", n)
	}
}

// Modules that only running or compiling them shows to be wrong are refused at upload, with a
// report; nothing of them can be run.
func TestAdmissionTriesTheInitialiser(t *testing.T) {
	with := func(initialize func(b *w.Builder) [][]byte) []byte {
		m := w.Manifest("bad", w.Provide("test:it.run@1", "run", abi.ReachOwner))
		b := w.New()
		body := initialize(b)
		b.ExportFunc("_initialize", b.Func(nil, nil, nil, body...))
		b.Capability("run")
		return b.Memory(1).ExportMemory().Manifest(m).Bytes()
	}
	r := newRig(t, 0)
	for name, c := range map[string]struct {
		module []byte
		code   abi.Code
	}{
		"initialize_loop": {with(func(*w.Builder) [][]byte { return [][]byte{w.Loop(w.Br(0))} }), abi.CodeInitializeFailed},
		"initialize_trap": {with(func(*w.Builder) [][]byte { return [][]byte{w.Op(w.OpUnreachable)} }), abi.CodeInitializeFailed},
		"start_hostcall": {with(func(b *w.Builder) [][]byte {
			return [][]byte{w.Call(b.Host("input")), w.Op(w.OpDrop)}
		}), abi.CodeInitializeFailed},
		"does not validate": {with(func(*w.Builder) [][]byte { return [][]byte{w.Op(w.OpI32Add), w.Op(w.OpDrop)} }), abi.CodeModuleInvalid},
		"not a module":      {[]byte("hello"), abi.CodeModuleNotWasm},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := r.host.Admit(patience(t), wasm.Original{Module: c.module})
			if abi.CodeOf(err) != abi.CodeModuleRefused {
				t.Fatalf("%v", err)
			}
			has := func(p admission.Problem) bool { return p.Code == c.code }
			if report == nil || report.Accepted || !slices.ContainsFunc(report.Problems, has) {
				t.Errorf("%+v", report)
			}
			if report.Digest != "" {
				if o := r.run("acme", report.Digest, "run", `1`); o.Err == nil || o.Err.Code != abi.CodeImageNotReady {
					t.Errorf("it runs: %v", o.Err)
				}
			}
		})
	}
	if r.host.Started() != 0 {
		t.Errorf("%d guests started", r.host.Started())
	}
}

// Admitting is cancelled with its caller, and that is not the module's fault.
func TestAdmitCancelled(t *testing.T) {
	r := newRig(t, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.host.Admit(ctx, wasm.Original{Module: echo("one")}); abi.CodeOf(err) != abi.CodeCanceled {
		t.Error(err)
	}
}

func TestUnknownDigests(t *testing.T) {
	r := newRig(t, 0)
	for _, digest := range []string{"", "../../etc/passwd", strings.Repeat("0", 63), strings.Repeat("g", 64)} {
		if o := r.run("acme", digest, "run", `1`); o.Err == nil || o.Err.Code != abi.CodeNotFound {
			t.Errorf("%q: %v", digest, o.Err)
		}
	}
	if o := r.run("acme", strings.Repeat("0", 64), "run", `1`); o.Err == nil || o.Err.Code != abi.CodeImageNotReady {
		t.Error(o.Err)
	}
}

// S14: what is kept of a module is damaged or gone: not ready, no instruction runs, the parent
// does not compile, and before long it is there again.
func TestDamagedCacheIsRebuilt(t *testing.T) {
	r := newRig(t, 0)
	digest := r.admit(echo("one"))
	damaged := 0
	err := filepath.WalkDir(filepath.Join(r.dir, "cache"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		damaged++
		return os.WriteFile(path, []byte("not code"), 0o600)
	})
	if err != nil || damaged == 0 {
		t.Fatal(damaged, err)
	}
	if o := r.run("acme", digest, "run", `1`); o.Err == nil || o.Err.Code != abi.CodeImageNotReady {
		t.Fatalf("%v", o.Err)
	}
	if r.host.Started() != 0 {
		t.Error("a guest started")
	}
	for ctx := patience(t); ; {
		o := r.run("acme", digest, "run", `1`)
		if o.Err == nil {
			break
		}
		if o.Err.Code != abi.CodeImageNotReady || ctx.Err() != nil {
			t.Fatal(o.Err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if compile.ParentCompiles() != 0 {
		t.Error("the parent compiled")
	}
}

// table_grow_bomb: a table that declares no maximum is held to the limit all the same. PF-D1
func TestTableGrowBomb(t *testing.T) {
	b := w.New()
	output := b.Host("output")
	b.Table(w.FuncRef, 1)
	const refNull, misc, tableGrow, tableSize, i32GeU = 0xd0, 0xfc, 15, 16, 0x4f
	b.Capability("run",
		// Grow until refused, then answer 1 when the size is at most the limit.
		w.Loop(w.Op(refNull, w.FuncRef), w.I32Const(1000), w.Op(misc, tableGrow, 0), w.I32Const(-1), w.Op(0x47), w.BrIf(0)),
		w.I32Const(0),
		w.I32Const(100_000), w.Op(misc, tableSize, 0), w.Op(i32GeU), w.I32Const('0'), w.Op(w.OpI32Add), w.Store8(0),
		w.I32Const(0), w.I32Const(1), w.Call(output), w.Op(w.OpI32WrapI64))
	r := newRig(t, 0)
	m := w.Manifest("tables", w.Provide("test:it.run@1", "run", abi.ReachOwner))
	digest := r.admit(b.Memory(1).ExportMemory().Manifest(m).Bytes())
	if o := r.run("acme", digest, "run", `1`); string(o.Output) != "1" {
		t.Errorf("%q, %v", o.Output, o.Cause)
	}
}

func TestForget(t *testing.T) {
	r := newRig(t, 0)
	digest := r.admit(echo("one"))
	if err := r.host.Warm(patience(t), "acme", digest); err != nil {
		t.Fatal(err)
	}
	r.shelf.mu.Lock()
	delete(r.shelf.modules, digest)
	r.shelf.mu.Unlock()
	if err := r.host.Forget(digest); err != nil {
		t.Fatal(err)
	}
	if err := r.host.Warm(patience(t), "acme", digest); abi.CodeOf(err) != abi.CodeImageNotReady {
		t.Error(err)
	}
}

// A biome in Go, as an author builds it.
func TestGoGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a WebAssembly module with the Go toolchain")
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	r := newRig(t, 0)
	digest := r.admit(buildGo(t, "./testdata/greet", "", "greet", "look", "fetch", "seeds", "panics"))

	if o := r.run("acme", digest, "greet", `{"name":"Ada"}`); string(o.Output) != `"hello Ada"` {
		t.Errorf("%q, %v", o.Output, o.Cause)
	}
	// M29: nothing of the process is there to be seen.
	if o := r.run("acme", digest, "look", `{}`); string(o.Output) != `{"args":[],"environ":[]}` {
		t.Errorf("%q, %v", o.Output, o.Cause)
	}
	// PF-H13: the denied call is a value to it, and it answers.
	o := r.run("acme", digest, "fetch", `{}`)
	if string(o.Output) != `"denied: true"` {
		t.Errorf("%q, %v", o.Output, o.Cause)
	}
	if l := o.Receipt.Lines; len(l) != 1 || l[0].Code != abi.CodeReachCeiling || l[0].Function != "http_fetch" {
		t.Errorf("%+v", l)
	}
	// PF-F17: its random numbers are its own in each invocation.
	a, b := r.run("acme", digest, "seeds", `{}`), r.run("acme", digest, "seeds", `{}`)
	var first, second []string
	if err := errors.Join(json.Unmarshal(a.Output, &first), json.Unmarshal(b.Output, &second)); err != nil {
		t.Fatal(err, a.Cause, b.Cause)
	}
	if first[0] == second[0] || first[1] == second[1] || first[2] != "true" {
		t.Errorf("%v and %v", first, second)
	}
	if o := r.run("acme", digest, "panics", `{}`); o.Err == nil || (o.Err.Code != abi.CodeGuestExit && o.Err.Code != abi.CodeGuestTrap) || strings.Contains(o.Err.Message, "own panic") {
		t.Errorf("%v", o.Err)
	} else if len(o.Receipt.Logs) == 0 {
		t.Error("what the runtime said of the panic is not in the log")
	}
	if o := r.run("acme", digest, "greet", `{"name":"Bob"}`); string(o.Output) != `"hello Bob"` {
		t.Errorf("after a panic: %q, %v", o.Output, o.Cause)
	}
}

// buildGo builds a reactor and gives it a manifest that provides the exports.
func buildGo(t testing.TB, dir string, freeze abi.Freeze, exports ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, dir)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var provides []abi.Descriptor
	for _, e := range exports {
		provides = append(provides, w.Provide("greet:it."+e+"@1", e, abi.ReachIntegration))
	}
	manifest := w.Manifest("greet", provides...)
	manifest.Freeze = freeze
	return append(module, w.Section(w.SectionCustom, w.Cat(w.Name(abi.ManifestSection), w.MustJSON(manifest)))...)
}

// Package biomes_test runs the first-party biomes and the guests for tests as a host runs
// them: admitted, compiled in the child, behind the boundary, with real files and a real store.
package biomes_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/gateway/keyspace"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/files"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

func TestMain(m *testing.M) {
	compile.RunIfChild()
	goleak.VerifyTestMain(m)
}

// world is one host with admitted biomes, one workspace and one key space.
type world struct {
	t        *testing.T
	host     *host.Host
	services boundary.Services

	mu       sync.Mutex
	modules  map[string][]byte // by digest
	provider map[abi.CapabilityRef]provider
}

type provider struct {
	digest string
	abi.Descriptor
}

const (
	org       = "acme"
	workspace = "w1"
)

func newWorld(t *testing.T, biomes ...string) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("builds WebAssembly modules with the Go toolchain")
	}
	w := &world{t: t, modules: map[string][]byte{}, provider: map[abi.CapabilityRef]provider{}}
	store, err := badger.OpenMemory()
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	workspaces, err := files.New(t.TempDir(), keyspace.NewLabels(store))
	must(t, err)
	t.Cleanup(func() { must(t, workspaces.Close()) })
	must(t, workspaces.Ensure(t.Context(), workspace, abi.Internal))
	w.services = boundary.Services{KV: keyspace.New(store), Files: workspaces, Children: w, Journal: quiet{}}

	key := make([]byte, 32)
	_, _ = rand.Read(key)
	pool := engine.NewPooled(engine.PoolOptions{Verify: true})
	t.Cleanup(func() {
		pool.Close()
		if s := pool.Stats(); s.Frozen == 0 || s.Mismatches != 0 {
			t.Errorf("the pool at the end: %+v", s)
		}
	})
	w.host, err = host.New(t.Context(), host.Options{Dir: t.TempDir(), Key: key, Limits: abi.DefaultLimits(), Source: w.source, Pool: pool})
	must(t, err)
	t.Cleanup(func() { must(t, w.host.Close()) })
	for _, name := range biomes {
		w.admit(name)
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quiet is a journal that is always written.
type quiet struct{}

func (quiet) Started(context.Context, *authority.Authority) error { return nil }
func (quiet) Announce(context.Context, *authority.Authority, int, string, string) error {
	return nil
}
func (quiet) Closed(context.Context, *authority.Authority, int, abi.Code) error { return nil }

func (w *world) source(_ context.Context, digest string) (wasm.Original, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return wasm.Original{Module: w.modules[digest]}, nil
}

func (w *world) admit(name string) {
	w.t.Helper()
	build1 := build.Guest
	for _, first := range build.Names() {
		if first == name {
			build1 = build.Biome
		}
	}
	module, err := build1(w.t.Context(), name)
	must(w.t, err)
	report, err := w.host.Admit(w.t.Context(), wasm.Original{Module: module})
	if err != nil {
		w.t.Fatalf("%s: %v %+v", name, err, report)
	}
	w.mu.Lock()
	w.modules[report.Digest] = module
	for _, d := range report.Manifest.Provides {
		w.provider[d.Ref] = provider{report.Digest, d}
	}
	w.mu.Unlock()
	must(w.t, w.host.Warm(w.t.Context(), org, report.Digest))
}

func (w *world) run(ref abi.CapabilityRef, input any, change ...func(*authority.Spec)) host.Outcome {
	w.t.Helper()
	text, ok := input.(string)
	if !ok {
		b, err := json.Marshal(input)
		must(w.t, err)
		text = string(b)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	return w.invoke(ctx, ref, []byte(text), change...)
}

func (w *world) invoke(ctx context.Context, ref abi.CapabilityRef, input []byte, change ...func(*authority.Spec)) host.Outcome {
	w.mu.Lock()
	p, ok := w.provider[ref]
	w.mu.Unlock()
	if !ok {
		return host.Outcome{Err: abi.Errorf(abi.CodeCapabilityUnknown, "no such capability")}
	}
	spec := authority.Spec{
		Invocation: "01J0000000000000000000TEST", Org: org, Space: "main", Session: "s1", Workspace: workspace, Biome: p.digest[:8],
		Digest: p.digest, Export: p.Export, Capability: ref, Reach: p.Reach, Floor: abi.Internal, Start: abi.Internal,
		Ceiling: abi.Confidential, Clearance: abi.Confidential, Limits: abi.DefaultLimits(),
	}
	must(w.t, spec.Limits.Set("wall", 120_000)) // a busy machine is no reason to fail
	must(w.t, spec.Limits.Set("fuel", abi.OperatorMax))
	for _, f := range change {
		f(&spec)
	}
	return w.host.Run(ctx, boundary.New(boundary.Spec{
		Authority: authority.New(spec, func() *abi.Error { return nil }), Input: input, Services: w.services,
	}))
}

// InvokeChild is the little of an invoker that relay needs here.
func (w *world) InvokeChild(ctx context.Context, s boundary.Scope, ref abi.CapabilityRef, input []byte) (boundary.Result, error) {
	o := w.invoke(ctx, ref, input)
	if refusal := s.Flow.Observe(o.Label); refusal != nil {
		return boundary.Result{}, refusal
	}
	if o.Err == nil {
		return boundary.Result{Body: o.Output, Target: string(ref)}, nil
	}
	problem, err := json.Marshal(map[string]any{"code": o.Err.Code, "detail": o.Err.Message})
	return boundary.Result{Body: problem, Target: string(ref), Code: o.Err.Code}, err
}

// into runs a capability that must succeed.
func into[Out any](w *world, ref abi.CapabilityRef, input any, change ...func(*authority.Spec)) (out Out) {
	w.t.Helper()
	o := w.run(ref, input, change...)
	if o.Err != nil {
		w.t.Fatalf("%s: %v %+v", ref, o.Cause, o.Guest)
	}
	must(w.t, json.Unmarshal(o.Output, &out))
	return out
}

func (w *world) refused(ref abi.CapabilityRef, input any, code string) {
	w.t.Helper()
	if o := w.run(ref, input); o.Guest == nil || o.Guest.Code != code {
		w.t.Errorf("%s %v: %v %+v, want %s", ref, input, o.Err, o.Guest, code)
	}
}

type object = map[string]any

// The parts share one host, because compiling a Go module takes seconds.
func TestBiomes(t *testing.T) {
	w := newWorld(t, "workspace", "notes", "relay", "probe", "leaky", "echo", "slow")
	for _, part := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"workspace", testWorkspace}, {"notes and relay", testNotesAndRelay}, {"probe", testProbe}, {"leaky", testLeaky}, {"echo and slow", testEchoAndSlow},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, w.of(t)) })
	}
}

// of is the world as one part sees it.
func (w *world) of(t *testing.T) *world {
	part := &world{t: t, host: w.host, services: w.services, modules: w.modules, provider: w.provider}
	part.services.Children = part
	return part
}

// Each file tool does its work in a real workspace, and refuses by its own name.
func testWorkspace(t *testing.T, w *world) { // M2
	into[object](w, "ws:file.write@1", object{"path": "src/a.txt", "text": "one two two\n"})
	read := into[object](w, "ws:file.read@1", object{"path": "./src/../src/a.txt"})
	if read["text"] != "     1\tone two two\n" || read["truncated"] != false {
		t.Errorf("read %v", read)
	}
	w.refused("ws:file.edit@1", object{"path": "src/a.txt", "old": "two", "new": "2"}, "EDIT_AMBIGUOUS") // M6
	if o := w.run("ws:file.edit@1", object{"path": "src/a.txt", "old": "two", "new": "2"}); !strings.Contains(o.Guest.Message, "2 times") {
		t.Errorf("the count is lost: %s", o.Guest.Message)
	}
	w.refused("ws:file.edit@1", object{"path": "src/a.txt", "old": "three", "new": "3"}, "EDIT_NO_MATCH")
	w.refused("ws:file.edit@1", object{"path": "src/a.txt", "old": "", "new": "3"}, "EDIT_EMPTY")
	w.refused("ws:file.edit@1", object{"path": "src/a.txt", "old": "one", "new": "one"}, "EDIT_IDENTICAL")
	if got := into[object](w, "ws:file.edit@1", object{"path": "src/a.txt", "old": "two", "new": "2", "all": true}); got["count"] != 2.0 {
		t.Errorf("edited %v", got)
	}
	into[object](w, "ws:file.copy@1", object{"from": "src/a.txt", "to": "b.txt"})
	w.refused("ws:file.copy@1", object{"from": "src/a.txt", "to": "b.txt"}, "FILE_EXISTS")                 // M13
	w.refused("ws:file.copy@1", object{"from": "src", "to": "c"}, "NOT_REGULAR")                           // M13
	w.refused("ws:file.write@1", object{"path": "b.txt", "text": "over"}, "READ_REQUIRED")                 // M3, M13
	w.refused("ws:file.write@1", object{"path": "b.txt", "text": "x", "version": "0"}, "VERSION_MISMATCH") // M4
	w.refused("ws:file.write@1", object{"path": "b.txt", "text": "x", "create": true}, "FILE_EXISTS")      // M5
	w.refused("ws:file.move@1", object{"from": "src/a.txt", "to": "b.txt"}, "FILE_EXISTS")                 // M14
	into[object](w, "ws:file.move@1", object{"from": "src/a.txt", "to": "src/c.txt"})
	w.refused("ws:file.remove@1", object{"path": "src"}, "DIRECTORY_NOT_EMPTY") // M12
	w.refused("ws:file.read@1", object{"path": "../../etc/passwd"}, "PATH_INVALID")
	w.refused("ws:file.read@1", object{"path": "src/a.txt"}, "FILE_NOT_FOUND")

	list := into[struct{ Entries []struct{ Name, Kind string } }](w, "ws:file.list@1", object{})
	if fmt.Sprint(list.Entries) != "[{b.txt file} {src directory}]" {
		t.Errorf("listed %v", list.Entries)
	}
	found := into[struct {
		Matches []struct {
			Path string
			Line int
			Text string
		}
	}](w, "ws:file.grep@1", object{"pattern": "o.e 2", "glob": "src/**"})
	if fmt.Sprint(found.Matches) != "[{src/c.txt 1 one 2 2}]" {
		t.Errorf("found %v", found.Matches)
	}
	if got := into[struct{ Paths []string }](w, "ws:file.glob@1", object{"glob": "**/*.txt"}); fmt.Sprint(got.Paths) != "[b.txt src/c.txt]" {
		t.Errorf("globbed %v", got.Paths)
	}
	into[object](w, "ws:file.remove@1", object{"path": "src/c.txt"})
	into[object](w, "ws:file.remove@1", object{"path": "src"})
}

func testNotesAndRelay(t *testing.T, w *world) {
	into[object](w, "notes:note.put@1", object{"id": "a", "text": "milk"})
	calls := func(s *authority.Spec) { s.Calls = []abi.CapabilityRef{"notes:note.get@1"} }
	type answer struct {
		OK     bool
		Output struct{ Text string }
		Error  struct{ Errno, Code string }
	}
	got := into[answer](w, "relay:capability.invoke@1", object{"ref": "notes:note.get@1", "input": object{"id": "a"}}, calls)
	if !got.OK || got.Output.Text != "milk" {
		t.Errorf("relayed %+v", got)
	}
	got = into[answer](w, "relay:capability.invoke@1", object{"ref": "notes:note.get@1", "input": object{"id": "none"}}, calls)
	if got.OK || got.Error.Errno != "ECHILD" || got.Error.Code != "GUEST_ERROR" {
		t.Errorf("a failed child: %+v", got)
	}
	// PF-H13: what the install grant does not name is refused, and the relay answers.
	got = into[answer](w, "relay:capability.invoke@1", object{"ref": "notes:note.delete@1", "input": object{"id": "a"}}, calls)
	if got.OK || got.Error.Errno != "EDENIED" {
		t.Errorf("outside the install grant: %+v", got)
	}
	if got := into[struct{ IDs []string }](w, "notes:note.list@1", object{}); fmt.Sprint(got.IDs) != "[a]" {
		t.Errorf("listed %v", got.IDs)
	}
}

// mask is what package scan of the guests expects.
func mask(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] ^= 0xa5
	}
	return hex.EncodeToString(b)
}

type probed struct {
	Args, Environ []string
	WASI          map[string]int32
	Host          map[string]struct {
		Value       int64
		Errno, Body string
	}
	Found       []int
	MemoryBytes int64
}

// The probe tries every door: it sees no argument, no environment and no byte of the process,
// and each host function answers as reach and services say.
func testProbe(t *testing.T, w *world) { // H1, M29
	const canary = "canary-5d1f0c3e-of-the-process"
	t.Setenv("AWS_SECRET_ACCESS_KEY", canary)
	input := object{"masked": []string{mask(canary), mask("file_stat of the probe itself"), mask("notes:note.list@1")}}
	calls := func(s *authority.Spec) {
		s.Calls, s.Secrets = []abi.CapabilityRef{"notes:note.list@1"}, []string{"token"}
	}
	got := into[probed](w, "probe:owner.dump@1", input, calls)
	if len(got.Args) != 0 || len(got.Environ) != 0 {
		t.Errorf("it sees arguments %q and environment %q", got.Args, got.Environ)
	}
	// What is in its memory is found, so that nothing found means nothing there.
	if fmt.Sprint(got.Found) != "[2]" || got.MemoryBytes < 1<<20 {
		t.Errorf("found %v in %d bytes", got.Found, got.MemoryBytes)
	}
	for name, errno := range got.WASI {
		want := map[string]int32{"clock_res_get": 0, "clock_time_get": 0, "random_get": 0, "sched_yield": 0, "fd_read": 0, "poll_oneoff": abi.WASIInval}[name]
		if strings.HasPrefix(name, "fd_") && name != "fd_read" {
			want = abi.WASIBadf
		}
		if errno != want {
			t.Errorf("%s answered %d, not %d", name, errno, want)
		}
	}
	if len(got.Host) != len(abi.Functions()) {
		t.Errorf("%d host functions were tried, there are %d", len(got.Host), len(abi.Functions()))
	}
	for _, f := range abi.Functions() {
		a := got.Host[f.Name]
		switch {
		case f.Reach != abi.ReachOwner: // X51
			if a.Errno != "EDENIED" || a.Body != "" {
				t.Errorf("%s, of reach %s, answered %+v", f.Name, f.Reach, a)
			}
		case f.Name == "error":
			if a.Errno != "EINVAL" {
				t.Errorf("error answered %+v", a)
			}
		case a.Value < 0: // M2: each file function once
			t.Errorf("%s answered %+v", f.Name, a)
		}
	}
	if child, _ := base64.StdEncoding.DecodeString(got.Host["capability_invoke"].Body); !strings.Contains(string(child), `"ids"`) {
		t.Errorf("the child answered %q", child)
	}
	// The same module, declared platform and held to owner by its environment: still refused (S9).
	held := into[probed](w, "probe:platform.dump@1", input, calls, func(s *authority.Spec) { s.Reach = abi.ReachOwner })
	if held.Host["audit_query"].Errno != "EDENIED" || held.Host["http_fetch"].Errno != "EDENIED" {
		t.Errorf("above the environment's reach: %+v", held.Host)
	}
	// Within its reach a function whose service is not there says so.
	free := into[probed](w, "probe:platform.dump@1", input, calls)
	for _, name := range []string{"audit_query", "http_fetch", "secret_hmac"} {
		if free.Host[name].Errno != "EUNAVAIL" {
			t.Errorf("%s answered %+v", name, free.Host[name])
		}
	}
}

// What a guest keeps is gone in the next invocation.
func testLeaky(t *testing.T, w *world) {
	const canary = "planted-by-the-caller-before"
	type state struct {
		Count, Ticks int
		Found        []int
	}
	for i := range 5 {
		got := into[state](w, "leaky:state.bump@1", object{"plant": canary + fmt.Sprint(i), "masked": []string{mask(canary + fmt.Sprint(i-1))}})
		if got.Count != 1 || got.Ticks != 0 || len(got.Found) != 0 {
			t.Fatalf("invocation %d sees %+v", i, got)
		}
	}
	// The search does find what the invocation itself was given.
	if got := into[state](w, "leaky:state.bump@1", object{"plant": canary, "masked": []string{mask(canary)}}); len(got.Found) != 1 {
		t.Errorf("the search found nothing: %+v", got)
	}
}

func testEchoAndSlow(t *testing.T, w *world) {
	if o := w.run("echo:input.echo@1", ` {"a":[1,null]} `); string(o.Output) != ` {"a":[1,null]} ` {
		t.Errorf("%q, %v", o.Output, o.Cause)
	}
	for _, ref := range []abi.CapabilityRef{"slow:time.spin@1", "slow:time.sleep@1"} {
		if got := into[object](w, ref, object{"ms": 5}); got["ms"] != 5.0 {
			t.Errorf("%s: %v", ref, got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if o := w.invoke(ctx, ref, []byte(`{"ms":600000}`)); abi.CodeOf(o.Err) != abi.CodeDeadline {
			t.Errorf("%s past its deadline: %v", ref, o.Err)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	o := w.invoke(ctx, "slow:time.forever@1", []byte(`{}`))
	if abi.CodeOf(o.Err) != abi.CodeDeadline || len(o.Receipt.Logs) != 1 {
		t.Errorf("forever: %v, logs %+v", o.Err, o.Receipt.Logs)
	}
	if o := w.run("echo:input.echo@1", `1`); string(o.Output) != `1` {
		t.Errorf("after all of that: %v", o.Err)
	}
}

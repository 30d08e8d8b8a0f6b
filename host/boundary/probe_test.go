package boundary_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// ram is a guest's memory.
type ram []byte

func (m ram) Read(off, n uint32) ([]byte, bool) {
	if uint64(off)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[off : uint64(off)+uint64(n)], true
}

func (m ram) Write(off uint32, b []byte) bool {
	view, ok := m.Read(off, uint32(len(b)))
	if ok {
		copy(view, b)
	}
	return ok
}

// put writes data at off and returns the (pointer, length) arguments for it.
func (m ram) put(off uint32, data string) (ptr, n uint64) {
	copy(m[off:], data)
	return uint64(off), uint64(len(data))
}

// outside stands for all services at once: it writes down what is asked of it, in order,
// and answers what it is told to.
type outside struct {
	events  []string
	answer  boundary.Result
	err     error
	during  func(ctx context.Context, s boundary.Scope, arguments ...[]byte) // while a service acts
	journal error
}

func (o *outside) services() boundary.Services {
	return boundary.Services{Files: files{o}, KV: keys{o}, HTTP: o, Signer: o, Children: o, Audit: o, Journal: o}
}

func (o *outside) saw(event string) bool { return slices.Contains(o.events, event) }

func (o *outside) act(ctx context.Context, s boundary.Scope, what string, arguments ...[]byte) (boundary.Result, error) {
	o.events = append(o.events, "act "+what)
	if o.during != nil {
		o.during(ctx, s, arguments...)
	}
	return o.answer, o.err
}

func (o *outside) Fetch(ctx context.Context, s boundary.Scope, r boundary.FetchRequest, body []byte) (boundary.Result, error) {
	return o.act(ctx, s, "fetch", body)
}

func (o *outside) HMAC(ctx context.Context, s boundary.Scope, name string, message []byte) (boundary.Result, error) {
	return o.act(ctx, s, "hmac", message)
}

func (o *outside) InvokeChild(ctx context.Context, s boundary.Scope, ref abi.CapabilityRef, in []byte) (boundary.Result, error) {
	return o.act(ctx, s, "child", in)
}

func (o *outside) Query(ctx context.Context, s boundary.Scope, q json.RawMessage) (boundary.Result, error) {
	return o.act(ctx, s, "query", q)
}

func (o *outside) Started(context.Context, *authority.Authority) error {
	o.events = append(o.events, "started")
	return o.journal
}

func (o *outside) Announce(_ context.Context, _ *authority.Authority, line int, function, target string) error {
	o.events = append(o.events, fmt.Sprintf("announce %d %s %s", line, function, target))
	return o.journal
}

func (o *outside) Closed(_ context.Context, _ *authority.Authority, line int, code abi.Code) error {
	o.events = append(o.events, fmt.Sprintf("closed %d %s", line, code))
	return o.journal
}

type keys struct{ *outside }

func (k keys) Get(ctx context.Context, s boundary.Scope, key string) (boundary.Result, error) {
	return k.act(ctx, s, "get "+key)
}

func (k keys) Put(ctx context.Context, s boundary.Scope, key string, v []byte) (boundary.Result, error) {
	return k.act(ctx, s, "put "+key, v)
}

func (k keys) Delete(ctx context.Context, s boundary.Scope, key string) (boundary.Result, error) {
	return k.act(ctx, s, "delete "+key)
}

func (k keys) List(ctx context.Context, s boundary.Scope, prefix, after string, limit int) (boundary.Result, error) {
	return k.act(ctx, s, fmt.Sprintf("list %s %s %d", prefix, after, limit))
}

type files struct{ *outside }

func (f files) Stat(ctx context.Context, s boundary.Scope, p string) (boundary.Result, error) {
	return f.act(ctx, s, "stat "+p)
}

func (f files) Read(ctx context.Context, s boundary.Scope, p string, off int64, n int) (boundary.Result, error) {
	return f.act(ctx, s, fmt.Sprintf("read %s %d %d", p, off, n))
}

func (f files) List(ctx context.Context, s boundary.Scope, p, after string, limit int) (boundary.Result, error) {
	return f.act(ctx, s, fmt.Sprintf("ls %s %s %d", p, after, limit))
}

func (f files) Create(ctx context.Context, s boundary.Scope, p string, data []byte) (boundary.Result, error) {
	return f.act(ctx, s, "create "+p, data)
}

func (f files) Write(ctx context.Context, s boundary.Scope, p string, data []byte) (boundary.Result, error) {
	return f.act(ctx, s, "write "+p, data)
}

func (f files) Replace(ctx context.Context, s boundary.Scope, p, version string, data []byte) (boundary.Result, error) {
	return f.act(ctx, s, "replace "+p+" "+version, data)
}

func (f files) Edit(ctx context.Context, s boundary.Scope, p string, old, with []byte, all bool) (boundary.Result, error) {
	return f.act(ctx, s, fmt.Sprintf("edit %s %t", p, all), old, with)
}

func (f files) Copy(ctx context.Context, s boundary.Scope, from, to string) (boundary.Result, error) {
	return f.act(ctx, s, "copy "+from+" "+to)
}

func (f files) Move(ctx context.Context, s boundary.Scope, from, to string) (boundary.Result, error) {
	return f.act(ctx, s, "move "+from+" "+to)
}

func (f files) Mkdir(ctx context.Context, s boundary.Scope, p string) (boundary.Result, error) {
	return f.act(ctx, s, "mkdir "+p)
}

func (f files) Remove(ctx context.Context, s boundary.Scope, p string) (boundary.Result, error) {
	return f.act(ctx, s, "remove "+p)
}

func (f files) Grep(ctx context.Context, s boundary.Scope, pattern, glob string, limit int) (boundary.Result, error) {
	return f.act(ctx, s, fmt.Sprintf("grep %s %s %d", pattern, glob, limit))
}

func (f files) Glob(ctx context.Context, s boundary.Scope, glob string, limit int) (boundary.Result, error) {
	return f.act(ctx, s, fmt.Sprintf("glob %s %d", glob, limit))
}

// permissive is an authority's content that lets everything in these tests through.
func permissive() authority.Spec {
	return authority.Spec{
		Invocation: "01J0000000000000000000TEST", Org: "acme", Space: "lab", Workspace: "w", Biome: "probe",
		Subject: "user:ada", Capability: "probe:self.run@1", Export: "run",
		Reach: abi.ReachPlatform,
		Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated,
		Secrets: []string{"token"}, Calls: []abi.CapabilityRef{"probe:other.run@1", "probe:self.run@1", "probe:above.run@1"},
		Limits: abi.DefaultLimits(),
	}
}

// rig is a running invocation, its guest's memory, and what lies outside it.
type rig struct {
	t       *testing.T
	inv     *boundary.Invocation
	mem     ram
	out     *outside
	revoked *abi.Error
}

func newRig(t *testing.T, change ...func(*authority.Spec)) *rig {
	t.Helper()
	spec := permissive()
	for _, f := range change {
		f(&spec)
	}
	r := &rig{t: t, mem: make(ram, 1<<16), out: &outside{}}
	r.inv = boundary.New(boundary.Spec{
		Authority: authority.New(spec, func() *abi.Error { return r.revoked }),
		Input:     []byte(`{"in":1}`),
		Services:  r.out.services(),
	})
	r.inv.Enter(boundary.PhaseInitialize)
	r.inv.Enter(boundary.PhaseRun)
	return r
}

func function(t testing.TB, name string) *abi.Function {
	t.Helper()
	fn, ok := abi.FunctionByName(name)
	if !ok {
		t.Fatalf("no host function %s", name)
	}
	return fn
}

// call makes a host call. Strings go to guest memory and become (pointer, length); numbers
// are passed as they are.
func (r *rig) call(name string, args ...any) int64 {
	r.t.Helper()
	return r.callIn(context.Background(), name, args...)
}

func (r *rig) callIn(ctx context.Context, name string, args ...any) int64 {
	r.t.Helper()
	var raw []uint64
	at := uint32(0)
	for _, a := range args {
		switch a := a.(type) {
		case string:
			ptr, n := r.mem.put(at, a)
			raw = append(raw, ptr, n)
			at += uint32(n)
		case int:
			raw = append(raw, uint64(a))
		default:
			r.t.Fatalf("argument %v of %s", a, name)
		}
	}
	return boundary.Call(ctx, r.inv, function(r.t, name), r.mem, raw)
}

// register reads the result register through the ABI.
func (r *rig) register(of string) string {
	r.t.Helper()
	const at = 32 << 10
	n := r.call(of, at, 0, 16<<10)
	if n < 0 {
		r.t.Fatalf("%s: %s", of, abi.Errno(-n))
	}
	return string(r.mem[at : at+n])
}

func (r *rig) conclude() boundary.Outcome {
	return r.inv.Conclude(context.Background(), nil, 0)
}

func (r *rig) want(got int64, errno abi.Errno) {
	r.t.Helper()
	if got != -int64(errno) {
		if got < 0 {
			r.t.Fatalf("got %s, want %s", abi.Errno(-got), errno)
		}
		r.t.Fatalf("got %d, want %s", got, errno)
	}
}

func (r *rig) ok(got int64) int64 {
	r.t.Helper()
	if got < 0 {
		r.t.Fatalf("got %s", abi.Errno(-got))
	}
	return got
}

// argumentsFor are valid arguments for every function of the table.
func argumentsFor(fn *abi.Function) []any {
	switch fn.Name {
	case "error":
		return []any{"MY_CODE", "text"}
	case "log":
		return []any{1, "text"}
	case "capability_invoke":
		return []any{"probe:other.run@1", `{}`}
	case "http_fetch":
		return []any{`{"method":"GET","url":"https://api.example/v1?q=s"}`, ""}
	case "secret_hmac":
		return []any{"token", "message"}
	case "audit_query":
		return []any{`{}`}
	case "file_edit":
		return []any{"a", "old", "new", 0}
	}
	var args []any
	for i := 0; i < len(fn.Params); i++ {
		if isPointer(fn.Params[i].Name) {
			args = append(args, "a")
			i++
			continue
		}
		args = append(args, 1)
	}
	return args
}

func isPointer(name string) bool { return len(name) > 4 && name[len(name)-4:] == "_ptr" }

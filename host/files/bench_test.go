package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records is a files.Labels in memory. It keeps JSON, as a store does, so that what does
// not survive the encoding fails here.
type records struct {
	mu   sync.Mutex
	m    map[string]map[string][]byte
	fail error
}

func (l *records) Load(_ context.Context, ws string, fn func(string, files.Record) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, b := range l.m[ws] {
		var r files.Record
		if err := abi.DecodeStrict(b, &r); err != nil {
			return err
		}
		if err := fn(p, r); err != nil {
			return err
		}
	}
	return nil
}

func (l *records) Apply(_ context.Context, ws string, changes []files.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	if l.m == nil {
		l.m = map[string]map[string][]byte{}
	}
	if l.m[ws] == nil {
		l.m[ws] = map[string][]byte{}
	}
	for _, c := range changes {
		if c.Record == nil {
			delete(l.m[ws], c.Path)
			continue
		}
		b, err := json.Marshal(c.Record)
		if err != nil {
			return err
		}
		l.m[ws][c.Path] = b
	}
	return nil
}

func (l *records) break_(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// copy is what a crash at this moment leaves.
func (l *records) copy() *records {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &records{m: map[string]map[string][]byte{}}
	for ws, m := range l.m {
		c.m[ws] = maps.Clone(m)
	}
	return c
}

const ws = "01JWORKSPACE"

type bench struct {
	*testing.T
	dir    string
	labels *records
	svc    *files.Service
}

func newBench(t *testing.T, options ...files.Option) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir(), labels: &records{}}
	b.start(options...)
	t.Cleanup(func() {
		if err := b.svc.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := b.svc.Ensure(t.Context(), ws, abi.Public); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) start(options ...files.Option) {
	b.Helper()
	svc, err := files.New(b.dir, b.labels, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.svc = svc
}

// restart is what a new process finds after an orderly end.
func (b *bench) restart(options ...files.Option) {
	b.Helper()
	if err := b.svc.Close(); err != nil {
		b.Fatal(err)
	}
	b.start(options...)
}

// host is a path of the workspace on the host.
func (b *bench) host(p string) string { return filepath.Join(b.dir, "workspaces", ws, p) }

// plant writes a file behind the gateway's back.
func (b *bench) plant(p, content string) {
	b.Helper()
	must(b, os.MkdirAll(filepath.Dir(b.host(p)), 0o700))
	must(b, os.WriteFile(b.host(p), []byte(content), 0o600))
}

// content reads a file past the gateway.
func (b *bench) content(p string) string {
	b.Helper()
	data, err := os.ReadFile(b.host(p))
	must(b, err)
	return string(data)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// guest makes calls, each in an invocation of its own.
type guest struct {
	b    *bench
	spec authority.Spec
	last *boundary.Invocation
	gone *abi.Error // what the authority answers
	ctx  context.Context
}

func (b *bench) guest(change ...func(*authority.Spec)) *guest {
	spec := authority.Spec{
		Org: "acme", Space: "lab", Biome: "tools", Session: "session-1", Workspace: ws,
		Floor: abi.Public, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated,
		Limits: abi.DefaultLimits(),
	}
	for _, c := range change {
		c(&spec)
	}
	return &guest{b: b, spec: spec, ctx: b.Context()}
}

func session(id string) func(*authority.Spec) { return func(s *authority.Spec) { s.Session = id } }
func ceiling(c abi.Classification) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Ceiling = c }
}

func start(c abi.Classification) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Start = c }
}

func globs(g ...string) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Resources = glob.Sets{glob.NewSet(g)} }
}

func limit(name string, v int64) func(*authority.Spec) {
	return func(s *authority.Spec) {
		if err := s.Limits.Set(name, v); err != nil {
			panic(err)
		}
	}
}

func (g *guest) scope() boundary.Scope {
	a := authority.New(g.spec, func() *abi.Error { return g.gone })
	g.last = boundary.New(boundary.Spec{Authority: a})
	return boundary.Scope{Authority: a, Flow: g.last}
}

// answer is what a guest learns from a call.
type answer struct {
	Call   string
	Code   abi.Code
	Text   string
	Body   string
	Meta   doc
	Value  int64
	Target string
}

type doc struct {
	Kind           string `json:"kind,omitempty"`
	Version        string `json:"version,omitempty"`
	Size           int64  `json:"size,omitempty"`
	Classification string `json:"classification,omitempty"`
	EOF            bool   `json:"eof,omitempty"`
	More           bool   `json:"more,omitempty"`
	Count          int    `json:"count,omitempty"`
}

func (g *guest) answer(call string, r boundary.Result, err error) answer {
	g.b.Helper()
	a := answer{Call: call, Body: string(r.Body), Value: r.Value, Target: r.Target, Code: r.Code}
	if len(r.Meta) > 0 {
		must(g.b, abi.DecodeStrict(r.Meta, &a.Meta))
	}
	if err != nil {
		var e *abi.Error
		if !errors.As(err, &e) {
			g.b.Fatalf("%s: an error without a code: %v", call, err)
		}
		a = answer{Call: call, Code: e.Code, Text: e.Message + e.Hint, Target: a.Target}
		if e.Code == abi.CodeInternal {
			g.b.Errorf("%s: %v", call, err)
		}
	}
	return a
}

func (g *guest) stat(p string) answer {
	r, err := g.b.svc.Stat(g.ctx, g.scope(), p)
	return g.answer("stat", r, err)
}

func (g *guest) read(p string) answer { return g.readAt(p, 0, files.MaxReadBytes) }
func (g *guest) readAt(p string, off int64, n int) answer {
	r, err := g.b.svc.Read(g.ctx, g.scope(), p, off, n)
	return g.answer("read", r, err)
}

func (g *guest) list(p string) answer { return g.listAfter(p, "", 0) }
func (g *guest) listAfter(p, after string, n int) answer {
	r, err := g.b.svc.List(g.ctx, g.scope(), p, after, n)
	return g.answer("list", r, err)
}

func (g *guest) create(p, data string) answer {
	r, err := g.b.svc.Create(g.ctx, g.scope(), p, []byte(data))
	return g.answer("create", r, err)
}

func (g *guest) write(p, data string) answer {
	r, err := g.b.svc.Write(g.ctx, g.scope(), p, []byte(data))
	return g.answer("write", r, err)
}

func (g *guest) replace(p, version, data string) answer {
	r, err := g.b.svc.Replace(g.ctx, g.scope(), p, version, []byte(data))
	return g.answer("replace", r, err)
}

func (g *guest) edit(p, old, new string, all bool) answer {
	r, err := g.b.svc.Edit(g.ctx, g.scope(), p, []byte(old), []byte(new), all)
	return g.answer("edit", r, err)
}

func (g *guest) copy(from, to string) answer {
	r, err := g.b.svc.Copy(g.ctx, g.scope(), from, to)
	return g.answer("copy", r, err)
}

func (g *guest) move(from, to string) answer {
	r, err := g.b.svc.Move(g.ctx, g.scope(), from, to)
	return g.answer("move", r, err)
}

func (g *guest) remove(p string) answer {
	r, err := g.b.svc.Remove(g.ctx, g.scope(), p)
	return g.answer("remove", r, err)
}

func (g *guest) mkdir(p string) answer {
	r, err := g.b.svc.Mkdir(g.ctx, g.scope(), p)
	return g.answer("mkdir", r, err)
}

func (g *guest) grep(pattern, glob string) answer {
	r, err := g.b.svc.Grep(g.ctx, g.scope(), pattern, glob, 0)
	return g.answer("grep", r, err)
}

func (g *guest) glob(glob string) answer {
	r, err := g.b.svc.Glob(g.ctx, g.scope(), glob, 0)
	return g.answer("glob", r, err)
}

// search looks through everything for up to n results.
func (g *guest) search(call string, n int) answer {
	if call == "glob" {
		r, err := g.b.svc.Glob(g.ctx, g.scope(), "**", n)
		return g.answer(call, r, err)
	}
	r, err := g.b.svc.Grep(g.ctx, g.scope(), "planted", "**", n)
	return g.answer(call, r, err)
}

// ok fails unless the call succeeded.
func (g *guest) ok(a answer) answer {
	g.b.Helper()
	if a.Code != "" {
		g.b.Fatalf("%s %s: %s: %s", a.Call, a.Target, a.Code, a.Text)
	}
	return a
}

// refused fails unless the call ended with the code.
func (g *guest) refused(a answer, code abi.Code) answer {
	g.b.Helper()
	if a.Code != code {
		g.b.Errorf("%s %s: %q (%s), want %s", a.Call, a.Target, a.Code, a.Text, code)
	}
	return a
}

// calls is every file function once, on a path and another.
func (g *guest) calls(p, other string) []answer {
	return []answer{
		g.stat(p), g.read(p), g.list(p), g.create(p, "x"), g.write(p, "x"), g.replace(p, "v", "x"),
		g.edit(p, "a", "b", false), g.copy(p, other), g.move(p, other), g.copy(other, p), g.move(other, p), g.mkdir(p), g.remove(p),
	}
}

// tree lists what is on the disk, temporary files included.
func (b *bench) tree() []string {
	var out []string
	root := b.host(".")
	must(b, filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(root, p); rel != "." {
			out = append(out, rel)
		}
		return err
	}))
	slices.Sort(out)
	return out
}

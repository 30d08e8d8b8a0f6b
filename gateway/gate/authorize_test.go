package gate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/host/egress"
)

func TestRefusalHasNoAuthority(t *testing.T) {
	w := full()
	s := w.snapshot()
	f := w.facts(ref("sandbox"), callee, abi.ReachPlatform)
	d := Decide(s, &f)
	tm := terms(func() *Snapshot { return s })
	if Authorize(s, &f, &d, tm) != nil {
		t.Error("a refusal has an authority")
	}
	d.Verdict = Allow
	if Authorize(s, &f, &d, tm) != nil {
		t.Error("a verdict that was written by hand has an authority")
	}
	if Authorize(s, &f, &Decision{Verdict: Allow}, tm) != nil {
		t.Error("a decision that was written by hand has an authority")
	}
	ok := w.facts(ref("sandbox"), callee, abi.ReachOwner)
	d = Decide(s, &ok)
	for name, spoil := range map[string]func(*Terms){
		"latest": func(x *Terms) { x.Latest = nil }, "stands": func(x *Terms) { x.Stands = nil }, "clock": func(x *Terms) { x.Clock = nil },
	} {
		x := tm
		spoil(&x)
		if Authorize(s, &ok, &d, x) != nil {
			t.Errorf("an authority without a way to ask: %s", name)
		}
	}
}

func TestAuthorityHoldsTheDecision(t *testing.T) {
	w := full()
	env := ref("project")
	w.grants[grantKey{user, callee, env}] = []string{"reports/**"}
	w.overrides[env] = abi.Secret
	w.floor, w.clearance = abi.Internal, abi.Regulated
	f := w.facts(env, callee, abi.ReachPlatform)
	f.Reach, f.Clearance, f.Workspace = abi.ReachOwner, abi.Confidential, "ws"
	a := invoke(t, w, f).Spec()
	if a.Reach != abi.ReachOwner || a.Floor != abi.Internal || a.Start != abi.Internal || a.Ceiling != abi.Confidential || a.Clearance != abi.Confidential {
		t.Errorf("%s, floor %s, start %s, ceiling %s, clearance %s", a.Reach, a.Floor, a.Start, a.Ceiling, a.Clearance)
	}
	if !a.Resources.Match("reports/a") || a.Resources.Match("other") || a.Biome != "notes" || a.Digest != "d-notes" || a.Export != "read" || a.Workspace != "ws" {
		t.Errorf("%+v", a)
	}
	if len(a.Grants) != 1 || !strings.HasPrefix(a.Grants[0], "g-user:ada") || a.Generation != 7 || a.Boundary {
		t.Errorf("%+v", a)
	}
	if want := noon.Add(time.Duration(abi.LimitWall.Info().Default) * time.Millisecond); !a.Deadline.Equal(want) {
		t.Errorf("deadline %s, want %s", a.Deadline, want)
	}
	if !invoke(t, full(), full().facts(ref("sandbox"), callee, abi.ReachOwner)).Spec().Boundary {
		t.Error("sandbox is not of the boundary family")
	}
}

// Resources that two grants do not share are in neither's authority; what both name is, however it is
// written.
func TestGlobsIntersect(t *testing.T) {
	env := ref("project")
	for _, c := range []struct{ bot, ada, want []string }{
		{[]string{"**"}, []string{"**"}, somePaths},
		{[]string{"a/**"}, []string{"**"}, []string{"a", "a/b", "a/b/c", "a/x.md"}},
		{[]string{"a/**", "c"}, []string{"a/b", "c/**"}, []string{"a/b", "c"}},
		{[]string{"a/*"}, []string{"*/b"}, []string{"a/b"}},
		{[]string{"a/**"}, []string{"b/**"}, nil},
	} {
		w := full()
		w.grants[grantKey{agent, callee, env}], w.grants[grantKey{user, callee, env}] = c.bot, c.ada
		f := w.facts(env, callee, abi.ReachOwner)
		f.Subject, f.User = agent, user
		r := invoke(t, w, f).Spec().Resources
		var got []string
		for _, path := range somePaths {
			if r.Match(path) {
				got = append(got, path)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q and %q: %q", c.bot, c.ada, got)
		}
	}
}

// S18, promise 8: an authority ends with the policy that allowed it, at the next time it is
// asked, and survives every change that does not concern it.
func TestAuthorityEndsWithItsPolicy(t *testing.T) {
	env := ref("project")
	key := grantKey{user, callee, env}
	for name, c := range map[string]struct {
		ends   bool
		world  func(*world)
		policy func(*Org)
	}{
		"nothing":           {false, nil, nil},
		"another's grant":   {false, func(w *world) { delete(w.grants, grantKey{agent, callee, env}) }, nil},
		"newer upload":      {false, func(w *world) { w.calleeNewer = true }, nil},
		"revoked":           {true, func(w *world) { delete(w.grants, key) }, nil},
		"expired":           {true, func(w *world) { w.expiry[key] = noon }, nil},
		"disabled":          {true, func(w *world) { w.calleeDisabled = true }, nil},
		"uninstalled":       {true, func(w *world) { w.calleeInstalled = nil }, nil},
		"ceiling lowered":   {true, func(w *world) { w.overrides[env] = abi.Secret }, nil},
		"clearance lowered": {true, func(w *world) { w.clearance = abi.Internal }, nil},
		"org renamed":       {true, func(w *world) { w.org = "other" }, nil},
		"another grant":     {true, nil, func(o *Org) { o.Held(key.Subject, key.Capability).In(key.Environment).ID = "another" }},
		"another digest":    {true, nil, func(o *Org) { o.Biomes.At("notes").Installed.Digest = "another" }},
		"another install":   {true, nil, func(o *Org) { o.Biomes.At("notes").Installed.Install = "another" }},
		"another endpoint":  {true, nil, func(o *Org) { o.Biomes.At("notes").Installed.Kept.Endpoints = []*egress.Endpoint{{Name: "x"}} }},
		"another secret":    {true, nil, func(o *Org) { o.Biomes.At("notes").Installed.Kept.Secrets = []string{"x"} }},
		"another call":      {true, nil, func(o *Org) { o.Biomes.At("notes").Installed.Kept.Calls = []abi.CapabilityRef{caller} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := full()
			latest := w.snapshot()
			f := w.facts(env, callee, abi.ReachOwner)
			d := Decide(latest, &f)
			a := Authorize(latest, &f, &d, terms(func() *Snapshot { return latest }))
			if err := a.Current(); err != nil {
				t.Fatal(err)
			}
			w.generation++
			if c.world != nil {
				c.world(&w)
			}
			latest = w.snapshot()
			if c.policy != nil {
				c.policy(latest.Orgs.At("acme"))
			}
			for range 2 { // a refusal is not forgotten, and neither is an approval
				err := a.Current()
				if (err != nil) != c.ends || err != nil && err.Code != abi.CodeGrantRevoked {
					t.Errorf("it says %v", err)
				}
			}
		})
	}
}

// An authority ends at its grant's expiry without any change, when the invocation is told to
// stop, and with its parent.
func TestAuthorityEndsOtherwise(t *testing.T) {
	w := full()
	env := ref("project")
	w.expiry[grantKey{user, callee, env}] = noon.Add(time.Minute)
	s := w.snapshot()
	now := noon
	var stop *abi.Error
	tm := Terms{Latest: func() *Snapshot { return s }, Stands: func() *abi.Error { return stop }, Clock: func() time.Time { return now }}

	pf := w.facts(env, caller, abi.ReachOwner)
	pd := Decide(s, &pf)
	parentStop := (*abi.Error)(nil)
	ptm := tm
	ptm.Stands = func() *abi.Error { return parentStop }
	parent := Authorize(s, &pf, &pd, ptm)
	cf := pf.Child(parent, abi.Public, callee, noon)
	cf.Reach, cf.Rate, cf.Schema = abi.ReachOwner, Within, Satisfied
	cd := Decide(s, &cf)
	a := Authorize(s, &cf, &cd, tm)
	if err := a.Current(); err != nil {
		t.Fatal(err)
	}
	stop = abi.Errorf(abi.CodeCanceled, "cancelled")
	if err := a.Current(); err == nil || err.Code != abi.CodeCanceled {
		t.Errorf("told to stop: %v", err)
	}
	stop, parentStop = nil, abi.Errorf(abi.CodeDraining, "draining")
	if err := a.Current(); err == nil || err.Code != abi.CodeDraining {
		t.Errorf("parent told to stop: %v", err)
	}
	parentStop, now = nil, noon.Add(time.Minute)
	if err := a.Current(); err == nil || err.Code != abi.CodeGrantRevoked {
		t.Errorf("expired: %v", err)
	}
	if err := parent.Current(); err != nil {
		t.Errorf("the parent's own grant has no expiry: %v", err)
	}
}

// Many goroutines ask while policy goes back and forth; whoever asks under the last policy is
// told about the last policy.
func TestAuthorityIsAskedConcurrently(t *testing.T) {
	w := full()
	f := w.facts(ref("project"), callee, abi.ReachOwner)
	s := w.snapshot()
	d := Decide(s, &f)
	var mu sync.Mutex
	latest := s
	a := Authorize(s, &f, &d, terms(func() *Snapshot { mu.Lock(); defer mu.Unlock(); return latest }))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				a.Current()
			}
		})
	}
	for i := range 200 {
		w := full()
		w.generation += uint64(i)
		w.calleeDisabled = i%2 == 0
		next := w.snapshot()
		mu.Lock()
		latest = next
		mu.Unlock()
		if err := a.Current(); (err != nil) != w.calleeDisabled && i > 0 {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	wg.Wait()
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
}

// Only the gate makes authorities: nothing else in the program, tests apart, mentions
// authority.New, under whatever name the package is imported.
func TestOnlyTheGateMakesAuthorities(t *testing.T) {
	const made = "github.com/ecotone-dev/ecotone/host/authority"
	root := moduleRoot(t)
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil // the compiler says so, not this test
		}
		name := ""
		for _, i := range file.Imports {
			if strings.Trim(i.Path.Value, `"`) == made {
				name = "authority"
				if i.Name != nil {
					name = i.Name.Name
				}
			}
		}
		if name == "" {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "New" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
					found = append(found, filepath.ToSlash(rel))
				}
			}
			return true
		})
		if name == "." {
			found = append(found, rel+" (imported without a name)")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found, []string{"gateway/gate/authorize.go"}) {
		t.Errorf("authorities are made in %q", found)
	}
}

// The gate is pure: nothing it is built from stores, serves or runs anything.
func TestGateImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		for _, bad := range []string{"/gateway/store", "/gateway/policy", "/gateway/audit", "badger", "wazero", "fasthttp"} {
			if strings.Contains(p, bad) {
				t.Errorf("the gate depends on %s", p)
			}
		}
	}
	direct, err := exec.Command("go", "list", "-f", `{{join .Imports " "}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(direct)) {
		if p == "os" || p == "net" || strings.HasPrefix(p, "net/") || p == "io" || p == "context" {
			t.Errorf("the gate imports %s", p)
		}
	}
}

// S4, X32: a child begins at its parent's label and ends by its parent's deadline, with its
// lineage.
func TestChildInherits(t *testing.T) {
	w := full()
	env := ref("project")
	s := w.snapshot()
	latest := func() *Snapshot { return s }
	pf := w.facts(env, caller, abi.ReachIntegration)
	pd := Decide(s, &pf)
	tm := terms(latest)
	tm.Deadline = noon.Add(time.Second) // sooner than the limits say
	parent := Authorize(s, &pf, &pd, tm)
	if got := parent.Spec().Deadline; !got.Equal(tm.Deadline) {
		t.Errorf("the caller's deadline is %s", got)
	}
	for _, label := range abi.Classifications() {
		cf := pf.Child(parent, label, callee, noon)
		cf.Reach, cf.Rate, cf.Schema = abi.ReachOwner, Within, Satisfied
		cd := Decide(s, &cf)
		c := Authorize(s, &cf, &cd, terms(latest)).Spec()
		if c.Start != label || c.Parent != "inv" || !slices.Equal(c.Chain, []abi.CapabilityRef{caller}) || !c.Deadline.Equal(tm.Deadline) {
			t.Errorf("called at %s: %+v", label, c)
		}
		if len(c.Grants) != 2 {
			t.Errorf("it rests on %q", c.Grants)
		}
	}
	cf := pf.Child(parent, 0, callee, noon)
	cf.Reach, cf.Rate, cf.Schema, cf.Clearance = abi.ReachOwner, Within, Satisfied, abi.Secret
	if d := Decide(s, &cf); d.Code != abi.CodeClassificationCeiling { // an unlabelled parent is regulated
		t.Errorf("%q", d.Code)
	}
}

// X44, X45, S4: obligations of the install grant and of every grant used narrow the authority, and a child
// has its parent's besides its own. Where grants are waived so are they.
func TestObligationsNarrow(t *testing.T) {
	w := full()
	s := w.snapshot()
	oblige := func(who abi.Subject, c abi.CapabilityRef, list ...grant.Obligation) {
		for _, g := range s.Orgs.At(w.org).Grants.At(Holder{who, c}) {
			g.Obligations = list
			if err := g.Compile(); err != nil {
				t.Fatal(err)
			}
		}
	}
	oblige(user, caller, grant.Obligation{Kind: grant.ObligeDuration, Seconds: 2}, grant.Obligation{Kind: grant.ObligeEgress, Allow: []string{"https://a.test/**"}})
	oblige(relay, callee, grant.Obligation{Kind: grant.ObligeEgress, Allow: []string{"https://b.test/**"}})
	oblige(user, callee, grant.Obligation{Kind: grant.ObligeClassification, Classification: abi.Internal})
	s.Orgs.At(w.org).Biomes.At("relay").Installed.Asks.Clearance = abi.Secret

	f := w.facts(ref("project"), caller, abi.ReachOwner)
	d := Decide(s, &f)
	a := Authorize(s, &f, &d, terms(func() *Snapshot { return s }))
	spec := a.Spec()
	if !spec.Deadline.Equal(noon.Add(2*time.Second)) || spec.Clearance != abi.Secret || len(spec.Egress) != 1 {
		t.Errorf("deadline %v, clearance %v, %d lists", spec.Deadline, spec.Clearance, len(spec.Egress))
	}
	c := f.Child(a, abi.Public, callee, noon.Add(time.Second))
	c.Reach, c.Rate, c.Schema = abi.ReachOwner, Within, Satisfied
	cd := Decide(s, &c)
	child := Authorize(s, &c, &cd, terms(func() *Snapshot { return s })).Spec()
	if !child.Deadline.Equal(spec.Deadline) || child.Clearance != abi.Internal || len(child.Egress) != 2 {
		t.Errorf("child: deadline %v, clearance %v, %d lists", child.Deadline, child.Clearance, len(child.Egress))
	}
	dev := w.facts(ref("trusted-dev"), caller, abi.ReachOwner)
	d = Decide(s, &dev)
	if got := Authorize(s, &dev, &d, terms(func() *Snapshot { return s })).Spec(); got.Clearance != abi.Regulated || len(got.Egress) != 0 {
		t.Errorf("trusted-dev: clearance %v, %d lists", got.Clearance, len(got.Egress))
	}
}

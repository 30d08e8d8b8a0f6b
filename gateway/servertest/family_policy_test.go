package servertest_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// family is a session of one environment, and what the environment does when the catalogue cannot say.
type family struct {
	*servertest.Session
	slug     string
	boundary bool
}

// ask asks for a capability in the three ways there are, and its parent for it as a child.
func (f family) ask() (direct, child, explained, listed servertest.Response) {
	return f.Invoke("load:a.do@1", none), f.Invoke("caller:a.do@1", none), f.Explain("load:a.do@1", none),
		f.G.Do("GET", f.G.Invoke+"/v1/capabilities", f.Token, nil)
}

// explanation is the part of an explanation that tells of the outage.
type explanation struct {
	Decision   string
	Code       abi.Code
	ReachCheck string
	Labels     []bound
	Ceilings   []bound
}

// bound is one of what a label or a ceiling is composed of.
type bound struct{ Of, Level string }

func lists(r servertest.Response, ref string) bool {
	r.T.Helper()
	var page struct {
		Items []struct{ Ref string }
	}
	r.Want(200).JSON(&page)
	for _, i := range page.Items {
		if i.Ref == ref {
			return true
		}
	}
	return false
}

// X13, X14, X15, S9: the catalogue goes down, slows down and comes back under mixed load in all nine environments and in
// two of an organisation's own: callers, children, explanations and lists at once. While it is down, or
// slower than a decision waits, a boundary environment admits nothing, explains that and lists nothing; a refinement one
// denies nothing because of it, and says deferred. What passes while it flips is held to the same: no
// row of a boundary allows with a reach that was not judged, no row of a refinement denies.
func TestFamiliesUnderLoad(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	all := everywhere()
	for slug, base := range map[string]string{"own-boundary": "sandbox", "own-refinement": "project"} {
		g.Control("POST", "/v1/orgs/default/environments", map[string]string{"slug": slug, "base": "environment:" + base}).Want(201)
		all = append(all, slug)
	}
	admit(g, "load", script("load", nil, action{ref: "load:a.do@1", reach: abi.ReachOwner}), all, nil)
	admit(g, "caller", script("caller", requires("load:a.do@1"), action{ref: "caller:a.do@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "load:a.do@1", "{}")}}),
		all, map[string]any{"calls": []string{"load:a.do@1"}})
	var families []family
	for _, e := range environment.BuiltIns() {
		families = append(families, family{open(g, e), e.Slug, e.Boundary()})
	}
	families = append(families, family{g.Open("user:alice", "own-boundary", nil), "own-boundary", true}, family{g.Open("user:alice", "own-refinement", nil), "own-refinement", false})

	var stop atomic.Bool
	var load sync.WaitGroup
	for _, f := range families {
		load.Go(func() {
			for !stop.Load() {
				direct, child, explained, listed := f.ask()
				var e explanation
				explained.JSON(&e)
				for _, r := range []servertest.Response{direct, child} {
					switch {
					case r.Status == 200:
					case f.boundary && r.Code() == abi.CodeUnclassified:
					default:
						t.Errorf("%s: %d %s", f.slug, r.Status, r.Body)
					}
				}
				switch {
				case f.boundary: // its catalogue may have come or gone on the way; the rows tell
					if e.ReachCheck == "deferred" || e.Decision == "allow" && e.ReachCheck != "enforced" {
						t.Errorf("%s: explained with %s", f.slug, explained.Body)
					}
				case errno(child) != 0:
					t.Errorf("%s: the child was refused: %s", f.slug, child.Body)
				case e.Decision != "allow" || !lists(listed, "load:a.do@1"):
					t.Errorf("%s: %s, %s", f.slug, explained.Body, listed.Body)
				}
			}
		})
	}
	outages := map[string]func(){
		"stopped":     g.Catalogue.Stop,
		"slow":        func() { g.Catalogue.Delay(math.MaxInt64) },
		"a bit slow":  func() { g.Catalogue.Delay(20 * time.Millisecond) },
		"as it is":    func() {},
		"down and up": func() { g.Catalogue.Stop(); g.Catalogue.Start() },
	}
	for name, outage := range outages {
		outage()
		out := name == "stopped" || name == "slow"
		for _, f := range families {
			direct, child, explained, listed := f.ask()
			var e explanation
			explained.Want(200).JSON(&e)
			switch {
			case out && f.boundary:
				direct.Refused(abi.CodeUnclassified)
				child.Refused(abi.CodeUnclassified)
				if e.Decision != "deny" || e.Code != abi.CodeUnclassified || lists(listed, "load:a.do@1") {
					t.Errorf("%s, %s: %s, %s", name, f.slug, explained.Body, listed.Body)
				}
			case out:
				direct.Want(200)
				if errno(child) != 0 || e.Decision != "allow" || e.ReachCheck != "deferred" || !lists(listed, "load:a.do@1") {
					t.Errorf("%s, %s: %s, %s, %s", name, f.slug, child.Body, explained.Body, listed.Body)
				}
			case name == "as it is" || name == "down and up":
				direct.Want(200)
				if errno(child) != 0 || e.Decision != "allow" || e.ReachCheck != "enforced" || !lists(listed, "load:a.do@1") {
					t.Errorf("%s, %s: %s, %s, %s", name, f.slug, child.Body, explained.Body, listed.Body)
				}
			case !f.boundary: // a bit slow: it may be slower still on a busy machine, but then no refinement minds
				direct.Want(200)
			}
		}
		g.Catalogue.Start()
	}
	stop.Store(true)
	load.Wait()

	boundary := map[string]bool{}
	for _, f := range families {
		boundary["environment:"+f.slug] = f.boundary
	}
	seen := map[string]int{}
	for after := ""; ; {
		var page struct {
			Items []auditRow `json:"items"`
			Next  string     `json:"next"`
		}
		g.Control("GET", "/v1/audit?kind=invocation&limit=500&after="+after, nil).Want(http.StatusOK).JSON(&page)
		for _, r := range page.Items {
			d := r.Decision
			outside := boundary[d.Environment]
			switch {
			case outside && d.Verdict == "allow" && d.ReachCheck != "enforced":
				t.Errorf("%s admitted what nobody knew the reach of: %+v", d.Environment, d)
			case !outside && d.Verdict != "allow":
				t.Errorf("%s refused because of the catalogue: %+v", d.Environment, d)
			case outside && d.Verdict == "deny":
				seen["refused"]++
			case d.ReachCheck == "deferred":
				seen["deferred"]++
			}
			if d.Parent != "" {
				seen["children "+d.ReachCheck+" "+d.Verdict]++
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if seen["refused"] == 0 || seen["deferred"] == 0 || seen["children deferred allow"] == 0 || seen["children enforced allow"] == 0 {
		t.Errorf("this shows nothing: %v", seen)
	}
}

// partly is a catalogue that cannot say the reach of one capability, while it is out.
type partly struct {
	catalogue.Catalogue
	ref abi.CapabilityRef
	out atomic.Bool
}

func (p *partly) Reach(ctx context.Context, org, digest string, ref abi.CapabilityRef) (abi.Reach, bool, error) {
	if ref == p.ref && p.out.Load() {
		return 0, false, errors.New("it cannot say")
	}
	return p.Catalogue.Reach(ctx, org, digest, ref)
}

// S9, X13: when the catalogue goes between a parent's decision and its child's, the child of a boundary
// environment is refused and starts no guest, and its parent is told; that of a refinement runs, deferred.
func TestOutageBetweenParentAndChild(t *testing.T) {
	t.Parallel()
	p := &partly{ref: "load:a.do@1"}
	g := servertest.Start(t, servertest.Dev, func(o *server.Options) {
		o.Catalogue = func(c catalogue.Catalogue) catalogue.Catalogue { p.Catalogue = c; return p }
	})
	admit(g, "load", script("load", nil, action{ref: "load:a.do@1", reach: abi.ReachOwner}), everywhere(), nil)
	admit(g, "caller", script("caller", requires("load:a.do@1"),
		action{ref: "caller:a.do@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "load:a.do@1", "{}")}}),
		everywhere(), map[string]any{"calls": []string{"load:a.do@1"}})
	for _, e := range environment.BuiltIns() {
		s := open(g, e)
		for _, out := range []bool{false, true} {
			p.out.Store(out)
			var r servertest.Response
			n := started(g, func() { r = s.Invoke("caller:a.do@1", none) })
			children := childrenOf(g, r)
			if len(children) != 1 {
				t.Fatalf("%s: %d children", e.Slug, len(children))
			}
			child := children[0].Decision
			switch {
			case out && e.Boundary():
				if errno(r) != abi.ECHILD || n != 1 || child.Code != abi.CodeUnclassified || child.ReachCheck == "deferred" {
					t.Errorf("%s: errno %s, %d guests, %+v", e.Slug, r.Body, n, child)
				}
			case errno(r) != 0 || n != 2 || (child.ReachCheck == "deferred") != out:
				t.Errorf("%s, out %v: errno %s, %d guests, %+v", e.Slug, out, r.Body, n, child)
			}
		}
	}
}

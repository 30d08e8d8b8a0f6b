package servertest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// busy is a limiter that lets nothing through once for each time it is asked to.
type busy struct {
	rate.Limiter
	left *atomic.Int64
}

func (b busy) Take(ctx context.Context, asks []rate.Ask) (time.Duration, error) {
	if b.left.Add(-1) >= 0 {
		return 500 * time.Millisecond, nil
	}
	b.left.Store(0)
	return b.Limiter.Take(ctx, asks)
}

// faults is where followers begin: a gateway, an origin, and a biome for each.
type faults struct {
	*servertest.Gateway
	origin string
	busy   atomic.Int64
}

// needsN is a schema with one thing that must be there.
func needsN(d *abi.Descriptor) {
	d.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
}

// provide uploads a biome with the capability <name>:a.do@1 and, unless environments is nil, installs it.
func (w *faults) provide(name string, environments []string, reach abi.Reach, steps ...step) {
	w.T.Helper()
	w.Upload(script(name, func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}, {Name: "origin-of-" + name, Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "signer", Why: "test"}}
		m.Requires.Capabilities = []abi.CapabilityRef{"callee:a.do@1", "callee:b.do@1"}
	}, action{ref: name + ":a.do@1", reach: reach, steps: steps, shape: needsN})).Want(201)
	if environments != nil {
		w.Install(name, environments, nil).Want(200)
	}
}

// follower is user:alice in project, calling <name>:a.do@1 with what satisfies it.
func (w *faults) follower(name string) *follower {
	return w.followerIn(name, "project", "")
}

func (w *faults) followerIn(name, environment, space string) *follower {
	f := &follower{g: w.Gateway, subject: "user:alice", space: space, ref: name + ":a.do@1", input: map[string]int{"n": 1}}
	f.open(environment, "")
	return f
}

func (w *faults) grant(name string, environments ...string) {
	for _, e := range environments {
		w.Grant("user:alice", name+":a.do@1", e)
	}
}

func (w *faults) override(slug, level string) {
	w.T.Helper()
	w.Control("PUT", "/v1/orgs/default/overrides/"+slug, map[string]string{"maxDataClassification": level}, "If-None-Match", "*").Want(200)
}

// starting are the faults, each with what a follower is expected to do, in order.
var starting = []struct {
	name string
	did  []string
	from func(w *faults) *follower
}{
	{"disabled", []string{"request-enable"}, func(w *faults) *follower {
		w.provide("disabled", []string{"project"}, abi.ReachOwner)
		w.grant("disabled", "project")
		w.disable("disabled")
		return w.follower("disabled")
	}},
	{"retired", []string{"use-successor"}, func(w *faults) *follower {
		w.provide("retired", []string{"project"}, abi.ReachOwner)
		w.provide("successor", []string{"project"}, abi.ReachOwner)
		w.grant("retired", "project")
		w.grant("successor", "project")
		w.Control("PUT", "/v1/capabilities/retired:a.do@1/lifecycle", map[string]string{"state": "retired", "replacedBy": "successor:a.do@1"}, "If-None-Match", "*").Want(200)
		return w.follower("retired")
	}},
	{"retired, with another major beside it", []string{"use-another-capability"}, func(w *faults) *follower {
		w.Upload(script("majors", nil, action{ref: "majors:a.do@1", reach: abi.ReachOwner, shape: needsN}, action{ref: "majors:a.do@2", reach: abi.ReachOwner, shape: needsN},
			action{ref: "majors:a.do@3", reach: abi.ReachOwner, shape: needsN}, action{ref: "majors:b.do@4", reach: abi.ReachOwner, shape: needsN})).Want(201)
		w.Install("majors", []string{"project"}, nil).Want(200)
		for _, ref := range []string{"majors:a.do@1", "majors:a.do@2", "majors:b.do@4"} { // of the third, nobody may know
			w.Grant("user:alice", ref, "project")
		}
		w.Control("PUT", "/v1/capabilities/majors:a.do@1/lifecycle", map[string]string{"state": "retired"}, "If-None-Match", "*").Want(200)
		return w.follower("majors")
	}},
	{"installed before", []string{"request-install"}, func(w *faults) *follower {
		w.Upload(script("before", nil, action{ref: "before:other.do@1", reach: abi.ReachOwner})).Want(201)
		w.Install("before", []string{"project"}, nil).Want(200)
		w.provide("before", nil, abi.ReachOwner)
		w.grant("before", "project")
		return w.follower("before")
	}},
	{"never installed", []string{"request-install"}, func(w *faults) *follower {
		w.provide("never", nil, abi.ReachOwner)
		w.grant("never", "project")
		return w.follower("never")
	}},
	{"another environment", []string{"request-install"}, func(w *faults) *follower {
		w.provide("another", []string{"org"}, abi.ReachOwner)
		w.grant("another", "project")
		return w.follower("another")
	}},
	{"no grant", []string{"request-grant"}, func(w *faults) *follower {
		w.provide("ungranted", []string{"project"}, abi.ReachOwner)
		return w.follower("ungranted")
	}},
	{"a user without", []string{"request-grant"}, func(w *faults) *follower {
		w.provide("delegated", []string{"project"}, abi.ReachOwner)
		w.Grant("agent:bot", "delegated:a.do@1", "project")
		f := w.follower("delegated")
		f.subject, f.user = "agent:bot", "user:alice"
		f.open("project", "")
		return f
	}},
	{"too far", []string{"switch-environment"}, func(w *faults) *follower {
		w.provide("far", []string{"project", "org"}, abi.ReachPlatform)
		w.grant("far", "project", "org")
		return w.follower("far")
	}},
	{"too far, and nowhere admitted", []string{"switch-environment", "request-install", "request-grant"}, func(w *faults) *follower {
		w.provide("nowhere", []string{"project"}, abi.ReachPlatform)
		w.grant("nowhere", "project")
		return w.follower("nowhere")
	}},
	{"not listed", []string{"switch-environment"}, func(w *faults) *follower {
		w.provide("unlisted", []string{"project"}, abi.ReachOwner)
		own(w.Gateway, "listing", "project", map[string]any{"allowedCapabilities": []string{"callee:a.do@1"}}).Want(201)
		w.Install("unlisted", []string{"project", "listing"}, nil).Want(200)
		w.grant("unlisted", "project", "listing")
		f := w.follower("unlisted")
		f.open("listing", "")
		return f
	}},
	{"declared too high", []string{"use-less-sensitive-data"}, func(w *faults) *follower {
		w.provide("declared", []string{"project"}, abi.ReachOwner)
		w.grant("declared", "project")
		f := w.follower("declared")
		f.declared = "secret"
		f.open("project", "internal")
		return f
	}},
	{"marked too high", []string{"open-session"}, func(w *faults) *follower {
		w.provide("marked", []string{"store-review"}, abi.ReachOwner)
		w.grant("marked", "store-review")
		f := w.follower("marked")
		f.open("store-review", "")
		f.s.Invoke(f.ref, f.input, "Ecotone-Classification", "secret").Want(200)
		w.override("store-review", "internal")
		return f
	}},
	{"a floor above the session", []string{"open-session"}, func(w *faults) *follower {
		w.provide("floor", []string{"project"}, abi.ReachOwner)
		w.grant("floor", "project")
		w.Control("POST", "/v1/spaces", map[string]any{"id": "high", "kind": "project", "parent": "default", "floor": "secret"}).Want(201)
		f := w.follower("floor")
		f.space = "high"
		f.open("project", "internal")
		return f
	}},
	{"a floor above the environment", []string{"request-ceiling"}, func(w *faults) *follower {
		w.provide("ceiling", []string{"app"}, abi.ReachOwner)
		w.grant("ceiling", "app")
		w.Control("POST", "/v1/spaces", map[string]any{"id": "higher", "kind": "project", "parent": "default", "floor": "confidential"}).Want(201)
		w.override("app", "internal")
		f := w.follower("ceiling")
		f.space = "higher"
		f.open("app", "")
		return f
	}},
	{"too often", []string{"wait"}, func(w *faults) *follower {
		w.provide("often", []string{"project"}, abi.ReachOwner)
		w.grant("often", "project")
		w.busy.Store(1)
		return w.follower("often")
	}},
	{"a wrong input", []string{"correct-input"}, func(w *faults) *follower {
		w.provide("wrong", []string{"project"}, abi.ReachOwner)
		w.grant("wrong", "project")
		f := w.follower("wrong")
		f.input = none
		return f
	}},
	{"not approved", []string{"await-approval"}, func(w *faults) *follower {
		w.provide("asking", []string{"project"}, abi.ReachOwner)
		w.Control("POST", "/v1/grants", map[string]any{
			"subject": "user:alice", "capability": "asking:a.do@1", "environment": "environment:project", "approval": true,
		}).Want(201)
		return w.follower("asking")
	}},
	{"everything of a caller's", []string{
		"request-grant", "request-enable", "request-install", "request-grant", "switch-environment", "request-install", "request-grant", "request-grant",
		"use-less-sensitive-data", "wait", "correct-input",
	}, func(w *faults) *follower {
		w.Upload(script("everything", nil, action{ref: "everything:other.do@1", reach: abi.ReachOwner})).Want(201)
		w.Install("everything", []string{"app"}, nil).Want(200)
		w.provide("everything", nil, abi.ReachPlatform)
		w.disable("everything")
		f := w.follower("everything")
		f.subject, f.user, f.input, f.declared = "agent:bot", "user:alice", none, "secret"
		f.open("project", "internal")
		w.override("org", "internal")
		w.override("system", "internal")
		w.busy.Store(1)
		return f
	}},

	// What the boundary refuses: the capability answers all the same, and its receipt has the suggestion.
	{"an unnamed key", []string{"request-grant"}, func(w *faults) *follower {
		w.provide("unnamed", []string{"project"}, abi.ReachOwner, do("kv_put", "reports/a*b", "1"))
		w.Grant("user:alice", "unnamed:a.do@1", "project", "notes/**")
		return w.follower("unnamed")
	}},
	{"a file that neither the agent's grant names nor the user's", []string{"request-grant", "request-grant"}, func(w *faults) *follower {
		w.provide("unwritten", []string{"project"}, abi.ReachOwner, do("file_create", "out.txt", "1"))
		w.Grant("agent:bot", "unwritten:a.do@1", "project", "in.txt")
		w.Grant("user:alice", "unwritten:a.do@1", "project", "reports/**", "o/*")
		f := w.follower("unwritten")
		f.subject, f.user, f.files = "agent:bot", "user:alice", true
		f.open("project", "")
		return f
	}},
	{"a user's space", []string{"request-grant"}, func(w *faults) *follower {
		w.provide("personal", []string{"project"}, abi.ReachOwner)
		w.grant("personal", "project")
		w.Control("POST", "/v1/spaces", map[string]any{"id": "of-alice", "kind": "user"}).Want(201)
		return w.followerIn("personal", "project", "of-alice")
	}},
	{"a URL that the grant does not name", []string{"request-grant", "request-install"}, func(w *faults) *follower {
		w.provide("urls", []string{"project"}, abi.ReachIntegration, do("http_fetch", `{"method":"GET","url":"`+w.origin+`/a"}`, ""))
		w.Control("POST", "/v1/grants", map[string]any{
			"subject": "user:alice", "capability": "urls:a.do@1", "environment": "environment:project", "urls": []string{w.origin + "/b/**"},
			"obligations": []map[string]any{{"kind": "audit"}},
		}).Want(201)
		return w.follower("urls")
	}},
	{"an endpoint that was not kept", []string{"request-install"}, func(w *faults) *follower {
		w.provide("unkept", []string{"project"}, abi.ReachIntegration, do("http_fetch", `{"method":"GET","url":"`+w.origin+`/a"}`, ""))
		w.grant("unkept", "project")
		return w.follower("unkept")
	}},
	{"an endpoint that is not there", []string{"request-endpoint"}, func(w *faults) *follower {
		second := strings.Replace(w.origin, "127.0.0.1", "localhost", 1)
		w.provide("unmade", []string{"project"}, abi.ReachIntegration, do("http_fetch", `{"method":"GET","url":"`+second+`/a"}`, ""))
		w.grant("unmade", "project")
		return w.follower("unmade")
	}},
	{"data above what an endpoint takes", []string{"use-less-sensitive-data", "open-session"}, func(w *faults) *follower {
		w.provide("flowing", []string{"project"}, abi.ReachIntegration, do("http_fetch", `{"method":"POST","url":"`+w.origin+`/a"}`, "x"))
		endpoint(w.Gateway, "origin-of-flowing", w.origin, map[string]any{"clearance": "internal"})
		w.Install("flowing", []string{"project"}, map[string]any{"endpoints": []string{"origin-of-flowing"}}).Want(200)
		w.grant("flowing", "project")
		f := w.follower("flowing")
		f.declared = "secret" // which, once it is answered, is the session's mark
		return f
	}},
	{"data above a key that would be made", []string{"use-less-sensitive-data", "open-session"}, func(w *faults) *follower {
		w.provide("storing", []string{"project"}, abi.ReachOwner, do("kv_put", "k", "1"))
		w.grant("storing", "project")
		f := w.follower("storing")
		f.declared = "internal"
		return f
	}},
	{"a secret that was not kept", []string{"request-install"}, func(w *faults) *follower {
		w.provide("unsigned", []string{"project"}, abi.ReachIntegration, do("secret_hmac", "signer", "m"))
		w.grant("unsigned", "project")
		return w.follower("unsigned")
	}},
	{"a child that is not to be called", []string{"request-install"}, func(w *faults) *follower {
		w.provide("caller", []string{"project"}, abi.ReachOwner, do("capability_invoke", "callee:a.do@1", `{"n":1}`))
		w.grant("caller", "project")
		return w.follower("caller")
	}},
	{"a biome that lost its grant", []string{"request-grant"}, func(w *faults) *follower {
		w.provide("loser", nil, abi.ReachOwner, do("capability_invoke", "callee:a.do@1", `{"n":1}`))
		w.Install("loser", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}}).Want(200)
		w.grant("loser", "project")
		revokeAll(w.Gateway, "biome:loser", "callee:a.do@1")
		return w.follower("loser")
	}},
	{"a child with every fault", []string{"request-install", "request-enable", "request-install", "request-grant"}, func(w *faults) *follower {
		w.Upload(script("lost", nil, action{ref: "lost:a.do@1", reach: abi.ReachOwner})).Want(201)
		w.Install("lost", []string{"org"}, nil).Want(200)
		w.Grant("user:alice", "lost:a.do@1", "org")
		w.disable("lost")
		w.Upload(script("finder", requires("lost:a.do@1"),
			action{ref: "finder:a.do@1", reach: abi.ReachOwner, shape: needsN, steps: []step{do("capability_invoke", "lost:a.do@1", "{}")}})).Want(201)
		w.Install("finder", []string{"project"}, map[string]any{"calls": []string{"lost:a.do@1"}}).Want(200)
		w.grant("finder", "project")
		revokeAll(w.Gateway, "biome:finder", "lost:a.do@1")
		w.Install("finder", []string{"project"}, nil).Want(200)
		return w.follower("finder")
	}},
}

// disable takes a biome out of use.
func (w *faults) disable(name string) {
	w.T.Helper()
	tag := w.Control("GET", "/v1/biomes/"+name, nil).Want(200).Header.Get("ETag")
	w.Control("POST", "/v1/biomes/"+name+"/disable", nil, "If-Match", tag).Want(200)
}

func newFaults(t *testing.T) *faults {
	t.Helper()
	w := &faults{}
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(origin.Close)
	w.origin = origin.URL
	w.Gateway = servertest.Start(t, func(o *server.Options) {
		o.EgressLoopback = true
		o.Limiter = func(l rate.Limiter) rate.Limiter { return busy{l, &w.busy} }
	})
	endpoint(w.Gateway, "origin", origin.URL, nil)
	putSecret(w.Gateway, "signer", "a-value-that-signs-0001")
	w.provide("callee", []string{"project"}, abi.ReachOwner)
	w.grant("callee", "project")
	return w
}

// X46: whatever is wrong with a call, a program that knows nothing of it and does what each answer
// suggests first makes the same call work, in at most as many rounds as there are checks; and the audit keeps
// what it was told.
func TestSuggestionsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newFaults(t)
	for _, c := range starting {
		t.Run(c.name, func(t *testing.T) {
			f := c.from(w)
			if worked, _ := f.call(); worked {
				t.Fatal("nothing is wrong with it")
			}
			if c.did[0] == "wait" || slices.Contains(c.did, "wait") {
				w.busy.Store(1) // the call before used the first one up
			}
			f.run(t)
			if !slices.Equal(f.did, c.did) {
				t.Errorf("it took %v, not %v", f.did, c.did)
			}
		})
	}
}

// The environment itself may be what is wrong: a development session on a server that is none any more is told where
// else the same call would work.
func TestSuggestionsLeaveDevelopment(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	w := &faults{Gateway: g}
	w.provide("left", nil, abi.ReachIntegration)
	f := w.followerIn("left", "trusted-dev", "dev")
	if worked, _ := f.call(); !worked {
		t.Fatal("it does not work in development")
	}
	g.Stop()
	f.g = servertest.Start(t, servertest.In(g.Dir))
	f.s.G = f.g
	f.run(t)
	// The narrowest first, and then, once the caller may know what the capability is, the narrowest that is wide enough.
	want := []string{"switch-environment", "request-grant", "request-install", "switch-environment", "request-install", "request-grant"}
	if !slices.Equal(f.did, want) {
		t.Errorf("it took %v, not %v", f.did, want)
	}
}

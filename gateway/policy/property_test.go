package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// history is a policy that random changes are made to, and what they were made of.
type history struct {
	*server
	rt       *rapid.T
	grants   []string
	sessions []*session.Session
	released map[string]abi.Classification // by session: what was released to it
	digests  int
}

var (
	drawnRefs     = []abi.CapabilityRef{notes, relay}
	drawnSubjects = []abi.Subject{ada, "user:bob", "agent:bot", "biome:relay"}
)

func drawEnv(rt *rapid.T, name string) abi.EnvironmentRef {
	return env(rapid.SampledFrom([]string{"project", "sandbox", "session", "org", "own"}).Draw(rt, name))
}

// step makes one change, or tries to: what policy refuses changes nothing.
func (h *history) step() {
	rt, ctx := h.rt, h.t.Context()
	biome := map[abi.CapabilityRef]string{notes: "notes", relay: "relay"}
	ref := rapid.SampledFrom(drawnRefs).Draw(rt, "ref")
	switch rapid.IntRange(0, 11).Draw(rt, "change") {
	case 0:
		h.digests++
		_, _, _ = h.PutBiome(ctx, h.op, BiomeRequest{Org: DefaultOrg, Digest: sum(100 + h.digests), Manifest: manifest(biome[ref], []abi.CapabilityRef{ref}, abi.Requires{Capabilities: drawnRefs[:1]})})
	case 1:
		b, err := h.Biome(h.op, DefaultOrg, biome[ref])
		if err != nil {
			return
		}
		r := InstallRequest{Org: DefaultOrg, Biome: b.Name, Digest: b.Digest, Environments: []abi.EnvironmentRef{drawEnv(rt, "one"), env("project")}}
		r.Environments = slices.Compact(r.Environments)
		if ref == relay && rapid.Bool().Draw(rt, "keeps its call") {
			r.Calls = drawnRefs[:1]
		}
		have, err := h.InstallOf(h.op, DefaultOrg, b.Name, "")
		if err == nil {
			_, _ = h.Install(ctx, h.op, r, Expect(have.Revision))
		} else {
			_, _ = h.Install(ctx, h.op, r, Unstated)
		}
	case 2, 3, 4, 5:
		r := GrantRequest{Org: DefaultOrg, Subject: rapid.SampledFrom(drawnSubjects).Draw(rt, "subject"), Capability: ref, Environment: drawEnv(rt, "environment")}
		if rapid.IntRange(0, 4).Draw(rt, "expires") == 0 {
			at := h.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "hours")) * time.Hour)
			r.Expires = &at
		}
		if g, err := h.CreateGrant(ctx, h.op, r); err == nil {
			h.grants = append(h.grants, g.ID)
		}
	case 6:
		if len(h.grants) > 0 {
			_, _ = h.RevokeGrant(ctx, h.op, DefaultOrg, rapid.SampledFrom(h.grants).Draw(rt, "grant"))
		}
	case 7:
		e := drawEnv(rt, "overridden")
		r := OverrideRequest{Org: DefaultOrg, Environment: e, MaxData: rapid.SampledFrom(abi.Classifications()).Draw(rt, "ceiling")}
		revision := Unstated
		if have, err := h.OverrideOf(h.op, DefaultOrg, e); err == nil {
			revision = Expect(have.Revision)
		}
		_, _ = h.PutOverride(ctx, h.op, r, revision)
	case 8:
		b, err := h.Biome(h.op, DefaultOrg, biome[ref])
		if err == nil {
			_, _ = h.SetBiomeDisabled(ctx, h.op, DefaultOrg, b.Name, !b.Disabled, Expect(b.Revision))
		}
	case 9:
		r := SessionRequest{Org: DefaultOrg, Subject: rapid.SampledFrom(drawnSubjects[:3]).Draw(rt, "who"), Environment: drawEnv(rt, "where")}
		if r.Subject == "agent:bot" {
			r.User = ada
		}
		if _, token, err := h.OpenSession(ctx, h.op, r); err == nil {
			s, err := h.Invoker(token)
			must(h.t, err)
			h.sessions = append(h.sessions, s)
			h.released[s.ID] = abi.Public
		}
	case 10:
		if len(h.sessions) > 0 {
			s := rapid.SampledFrom(h.sessions).Draw(rt, "to")
			label := rapid.SampledFrom(abi.Classifications()).Draw(rt, "label")
			if h.Release(ctx, s.ID, label) == nil {
				h.released[s.ID] = abi.Join(h.released[s.ID], label)
			}
		}
	case 11:
		h.now = h.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "minutes")) * time.Minute)
	}
}

// questions are facts of all who might ask for what, where.
func (h *history) questions() []gate.Facts {
	var out []gate.Facts
	for _, subject := range drawnSubjects[:3] {
		for _, ref := range append(slices.Clone(drawnRefs), "no:such.one@1") {
			for _, e := range append(environment.BuiltIns(), environment.Environment{Ref: env("own")}) {
				for _, reach := range []abi.Reach{0, abi.ReachOwner, abi.ReachPlatform} {
					f := gate.Facts{
						Now: h.now, Org: DefaultOrg, Session: "s", Space: RootSpace, Subject: subject, Environment: e.Ref, Clearance: abi.Regulated, Mark: abi.Internal,
						Capability: ref, Reach: reach, Rate: gate.Within, Schema: gate.Satisfied,
					}
					if subject == "agent:bot" {
						f.User = ada
					}
					out = append(out, f)
				}
			}
		}
	}
	return out
}

// answer is all of a decision that anybody can see, but the number of the policy: one that was loaded
// counts every change before as one that concerns everybody.
func answer(s *gate.Snapshot, f *gate.Facts) string {
	d := gate.Decide(s, f)
	return fmt.Sprint(d.Verdict, d.Code, d.Checks, d.ReachDeferred, d.Biome, d.Digest, d.Install, d.Reach, d.Start, d.Ceiling, d.Grants())
}

// Promise 2, S18: after any changes, the policy that grew with them and the one that is loaded from the records
// decide alike, about everything; and so do two that are loaded from the same records. A restart changes no
// decision, and neither does an outage: it denies while it lasts, turns no denial into an allow, and
// leaves nothing behind. That the catalogue is out turns a denial into an allow only where the environment
// refines and the declared reach was all that stood against it; then the least reach is given.
func TestSameRecordsSameDecisions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := &faulty{Store: memory(rt)}
		h := &history{server: startOn(t, disk, false, 0), rt: rt, released: map[string]abi.Classification{}}
		h.upload(DefaultOrg, "notes", 1, notes)
		h.upload(DefaultOrg, "relay", 2, relay)
		_, _ = h.CreateEnvironment(t.Context(), h.op, EnvironmentRequest{Org: DefaultOrg, Slug: "own", Base: env("project")})
		for range rapid.IntRange(1, 25).Draw(rt, "changes") {
			h.step()
		}
		one, other := h.again(), h.again()
		one.now, other.now = h.now, h.now
		allowed := 0
		for _, f := range h.questions() {
			grown := answer(h.Snapshot(), &f)
			for _, loaded := range []*server{one, other} {
				if got := answer(loaded.Snapshot(), &f); got != grown {
					rt.Fatalf("%s in %s, %s\ngrown:  %s\nloaded: %s", f.Subject, f.Environment, f.Capability, grown, got)
				}
			}
			known := gate.Decide(h.Snapshot(), &f)
			if known.Verdict == gate.Allow {
				allowed++
			}
			unknown := f
			unknown.Reach = 0
			if d := gate.Decide(h.Snapshot(), &unknown); d.Verdict == gate.Allow && f.Reach != 0 {
				onlyReach := known.Code == abi.CodeReachCeiling
				for i, c := range known.Checks {
					onlyReach = onlyReach && (c.State != gate.Failed || gate.CheckID(i) == gate.CheckReach)
				}
				if known.Verdict != gate.Allow && !onlyReach || d.Reach != abi.ReachOwner || !d.ReachDeferred {
					rt.Fatalf("the outage allows %s in %s with reach %s: known %+v", f.Capability, f.Environment, d.Reach, known.Explain())
				}
			}
		}
		before := map[string]string{}
		for _, f := range h.questions() {
			before[fmt.Sprint(f)] = answer(h.Snapshot(), &f)
		}
		disk.gone.Store(true)
		code(t, h.Probe(t.Context()), abi.CodePolicyStale)
		for _, f := range h.questions() {
			if d := gate.Decide(h.Snapshot(), &f); d.Verdict != gate.Deny {
				rt.Fatalf("allowed while nobody knows the newest policy: %+v", f)
			}
		}
		disk.gone.Store(false)
		must(t, h.Probe(t.Context()))
		for _, f := range h.questions() {
			if got := answer(h.Snapshot(), &f); got != before[fmt.Sprint(f)] {
				rt.Fatalf("the outage left something behind: %s", got)
			}
		}
		rt.Logf("%d allowed", allowed)
	})
}

// S3: a session's mark is the join of what was released to it, and nothing else moves it: no change of policy, no
// other session's release, no restart; nothing lowers it.
func TestMarkIsWhatWasReleased(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{server: start(t, false), rt: rt, released: map[string]abi.Classification{}}
		defer h.store.Close()
		h.upload(DefaultOrg, "notes", 1, notes)
		for range 2 {
			s, _ := h.session(SessionRequest{Environment: env("project")})
			h.sessions = append(h.sessions, s)
			h.released[s.ID] = abi.Public
		}
		last := map[string]abi.Classification{}
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			h.step()
			if rapid.IntRange(0, 14).Draw(rt, "restart") == 0 {
				next := h.again()
				h.server.Service = next.Service
			}
			for id, want := range h.released {
				l := h.live.get(id)
				if l == nil {
					continue
				}
				if got := l.now().Mark; got != want || got < last[id] {
					rt.Fatalf("the mark is %s after %s; released was %s", got, last[id], want)
				}
				last[id] = want
			}
		}
	})
}

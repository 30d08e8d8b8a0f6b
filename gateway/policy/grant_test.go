package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// X33, X34, X35: a grant counts from the moment it is made to the moment it is revoked, and
// stays on record with its end.
func TestGrantAndRevocation(t *testing.T) {
	s := start(t, false)
	g := s.notesInProject()
	sess, _ := s.session(SessionRequest{Environment: env("project")})
	s.decides(sess, notes, "")
	other, _ := s.session(SessionRequest{Environment: env("session")})
	s.decides(other, notes, abi.CodeEnvironmentNotGranted)

	r, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	must(t, err)
	s.decides(sess, notes, abi.CodeMissingGrant)
	again, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	must(t, err)
	if again != r {
		t.Error("a second revocation is another one")
	}
	page, err := s.Grants(t.Context(), s.op, DefaultOrg, "", "", all)
	must(t, err)
	grants := page.Items
	if len(grants) != 1 || grants[0].ID != g.ID || grants[0].Revoked == nil || grants[0].Revoked.CreatedBy != "principal:default/operator" {
		t.Errorf("%+v", grants)
	}
	s.again().decides(sess, notes, abi.CodeMissingGrant) // a restart revives nothing

	s.grant(ada, notes, "project")
	s.decides(sess, notes, "")
}

// PF-B7: what would not be enforced is refused with the field's name, and nothing is stored.
func TestGrantRefusals(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	past := noon.Add(-time.Second)
	ok := GrantRequest{Org: DefaultOrg, Subject: "user:eve", Capability: notes, Environment: env("project")}
	for name, c := range map[string]struct {
		code    abi.Code
		pointer string
		change  func(*GrantRequest)
	}{
		"rate":        {abi.CodeUnsupportedRule, "/rate/perHour", func(r *GrantRequest) { r.Rate = &grant.Rate{} }},
		"obligations": {abi.CodeUnsupportedRule, "/obligations/0/kind", func(r *GrantRequest) { r.Obligations = []grant.Obligation{{Kind: grant.ObligeCost}} }},
		"no globs":    {abi.CodeUnsupportedRule, "/globs", func(r *GrantRequest) { r.Globs = []string{} }}, // PF-A1
		"a bad glob":  {abi.CodeUnsupportedRule, "/globs", func(r *GrantRequest) { r.Globs = []string{"../x"} }},
		"subject":     {abi.CodeInvalidRequest, "/subject", func(r *GrantRequest) { r.Subject = "root" }},
		"capability":  {abi.CodeCapabilityUnknown, "/capability", func(r *GrantRequest) { r.Capability = relay }}, // PF-H5
		"environment": {abi.CodeNotFound, "/environment", func(r *GrantRequest) { r.Environment = env("mine") }},
		"expired":     {abi.CodeInvalidRequest, "/expires", func(r *GrantRequest) { r.Expires = &past }},
		"org":         {abi.CodeNotFound, "", func(r *GrantRequest) { r.Org = "nowhere" }},
		"covered":     {abi.CodeAlreadyExists, "", func(r *GrantRequest) { r.Subject = ada }},
	} {
		t.Run(name, func(t *testing.T) {
			r := ok
			c.change(&r)
			before := s.Snapshot()
			_, err := s.CreateGrant(t.Context(), s.op, r)
			code(t, err, c.code)
			if got := abi.AsError(err).Pointer; got != c.pointer {
				t.Errorf("it points at %q", got)
			}
			if s.Snapshot() != before || stored(t, s, "grant") != 1 {
				t.Error("something changed")
			}
			if e := s.audit.last(); e.Code != c.code || e.Name != "grant.created" { // refusals are recorded
				t.Errorf("%+v", e)
			}
		})
	}
	must(t, second(s.CreateGrant(t.Context(), s.op, ok)))
}

// S18, promise 8: a revocation that was answered is seen at the next host call of what runs.
func TestRevocationReachesWhatRuns(t *testing.T) {
	for name, end := range map[string]func(s *server, g grant.Grant, sess *session.Session) error{
		"grant": func(s *server, g grant.Grant, _ *session.Session) error {
			return second(s.RevokeGrant(s.t.Context(), s.op, DefaultOrg, g.ID))
		},
		"install": func(s *server, _ grant.Grant, _ *session.Session) error {
			return second(s.Uninstall(s.t.Context(), s.op, DefaultOrg, "notes", "", 1))
		},
		"another install": func(s *server, _ grant.Grant, _ *session.Session) error {
			return second(s.Install(s.t.Context(), s.op, InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(1), Environments: []abi.EnvironmentRef{env("project")}}, 1))
		},
		"biome": func(s *server, _ grant.Grant, _ *session.Session) error {
			return second(s.SetBiomeDisabled(s.t.Context(), s.op, DefaultOrg, "notes", true, 1))
		},
		"override": func(s *server, _ grant.Grant, _ *session.Session) error {
			return second(s.PutOverride(s.t.Context(), s.op, OverrideRequest{Org: DefaultOrg, Environment: env("project"), MaxData: abi.Internal}, Unstated))
		},
		"session": func(s *server, _ grant.Grant, sess *session.Session) error {
			return second(s.CloseSession(s.t.Context(), s.op, DefaultOrg, sess.ID))
		},
		"time": func(s *server, _ grant.Grant, sess *session.Session) error {
			s.now = sess.Expires
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, false)
			g := s.notesInProject()
			sess, _ := s.session(SessionRequest{Environment: env("project")})
			snap, f, d := s.decide(sess, notes)
			a := s.Authorize(snap, f, &d, "inv", time.Time{}, nil)
			s.grant("user:eve", notes, "project") // does not concern ada
			if err := a.Current(); err != nil {
				t.Fatalf("before: %v", err)
			}
			must(t, end(s, g, sess))
			if err := a.Current(); err == nil || err.Code != abi.CodeGrantRevoked {
				t.Errorf("after: %v", err)
			}
		})
	}
}

// X5, X63, PF-A1, PF-A2, PF-A21: what was not asked for or not kept is not there, the answer is
// what holds, and every way of saying nothing is nothing.
func TestInstallKeepsWhatIsNamed(t *testing.T) {
	s := start(t, false)
	s.upload(DefaultOrg, "notes", 1, notes)
	must(t, second(s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "api", Rule: rule("api.example.org")}, Unstated)))
	must(t, second(s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "other", Rule: rule("other.example.org")}, Unstated)))
	must(t, second(s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: "key", Uses: json.RawMessage(`[]`), Seal: sealed("x")}, Unstated)))
	requires := abi.Requires{Capabilities: []abi.CapabilityRef{notes}, Endpoints: []abi.Need{{Name: "api", Why: "w"}, {Name: "gone", Why: "w"}}, Secrets: []abi.Need{{Name: "key", Why: "w"}}}
	must(t, second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(2), Manifest: manifest("relay", []abi.CapabilityRef{relay}, requires)})))
	request := func(change func(*InstallRequest)) (grant.Install, error) {
		r := InstallRequest{Org: DefaultOrg, Biome: "relay", Digest: sum(2), Environments: []abi.EnvironmentRef{env("project")}}
		change(&r)
		i, err := s.InstallOf(s.op, DefaultOrg, "relay", "")
		e := Unstated
		if err == nil {
			e = Expect(i.Revision)
		}
		return s.Install(t.Context(), s.op, r, e)
	}
	for name, c := range map[string]struct {
		code    abi.Code
		pointer string
		change  func(*InstallRequest)
	}{
		"not asked call":      {abi.CodeInvalidRequest, "/calls", func(r *InstallRequest) { r.Calls = []abi.CapabilityRef{relay} }},
		"not asked endpoint":  {abi.CodeInvalidRequest, "/endpoints", func(r *InstallRequest) { r.Endpoints = []string{"other"} }},
		"not asked secret":    {abi.CodeInvalidRequest, "/secrets", func(r *InstallRequest) { r.Secrets = []string{"other"} }},
		"endpoint not there":  {abi.CodeNotFound, "/endpoints", func(r *InstallRequest) { r.Endpoints = []string{"gone"} }},
		"twice":               {abi.CodeInvalidRequest, "/calls", func(r *InstallRequest) { r.Calls = []abi.CapabilityRef{notes, notes} }},
		"no environment":      {abi.CodeInvalidRequest, "/environments", func(r *InstallRequest) { r.Environments = nil }},
		"unknown environment": {abi.CodeNotFound, "/environments", func(r *InstallRequest) { r.Environments = []abi.EnvironmentRef{env("mine")} }},
		"another digest":      {abi.CodeNotFound, "/digest", func(r *InstallRequest) { r.Digest = sum(1) }},
		"another biome":       {abi.CodeNotFound, "/biome", func(r *InstallRequest) { r.Biome = "nothing" }},
		"obligations":         {abi.CodeInvalidRequest, "/obligations/0/kind", func(r *InstallRequest) { r.Obligations = []grant.Obligation{{Kind: "be-nice"}} }},
		"endpoint for nothing": {abi.CodeUnsupportedRule, "/environments", func(r *InstallRequest) {
			r.Environments = []abi.EnvironmentRef{env("sandbox")}
			r.Endpoints = []string{"api"}
		}}, // PF-B16
	} {
		t.Run(name, func(t *testing.T) {
			before := s.Snapshot()
			_, err := request(c.change)
			code(t, err, c.code)
			if got := abi.AsError(err).Pointer; got != c.pointer {
				t.Errorf("it points at %q", got)
			}
			if s.Snapshot() != before {
				t.Error("something changed")
			}
		})
	}

	kept := func() gate.Kept { return s.Snapshot().Orgs.At(DefaultOrg).Biomes.At("relay").Installed.Kept }
	for name, change := range map[string]func(*InstallRequest){
		"absent": func(*InstallRequest) {},
		"empty": func(r *InstallRequest) {
			r.Calls, r.Endpoints, r.Secrets = []abi.CapabilityRef{}, []string{}, []string{}
		},
	} {
		i, err := request(change)
		must(t, err)
		if k := kept(); len(k.Calls)+len(k.Endpoints)+len(k.Secrets)+len(i.Calls)+len(i.Endpoints)+len(i.Secrets)+len(i.Grants) != 0 {
			t.Errorf("%s: %+v, said to be %+v", name, k, i)
		}
	}

	i, err := request(func(r *InstallRequest) {
		r.Environments = []abi.EnvironmentRef{env("project"), env("org")}
		r.Calls, r.Endpoints, r.Secrets = []abi.CapabilityRef{notes}, []string{"api"}, []string{"key"}
	})
	must(t, err)
	k := kept()
	if !slices.Equal(k.Calls, i.Calls) || len(k.Endpoints) != 1 || k.Endpoints[0].Name != "api" || !slices.Equal(k.Secrets, i.Secrets) || len(i.Grants) != 2 {
		t.Errorf("%+v, said to be %+v", k, i)
	}
	if held, err := s.InstallOf(s.op, DefaultOrg, "relay", ""); err != nil || !slices.Equal(held.Grants, i.Grants) {
		t.Errorf("%+v %v", held, err)
	}
	biomeGrants := func() (n int) {
		for k, held := range s.Snapshot().Orgs.At(DefaultOrg).Grants.All() {
			if k.Subject == "biome:relay" {
				n += len(held)
			}
		}
		return n
	}
	if biomeGrants() != 2 {
		t.Errorf("%d grants of the biome", biomeGrants())
	}

	// What is removed is gone from what is kept, too.
	must(t, s.RemoveEndpoint(t.Context(), s.op, DefaultOrg, "api", 1))
	must(t, s.RemoveSecret(t.Context(), s.op, DefaultOrg, "key", 1))
	if k := kept(); len(k.Endpoints)+len(k.Secrets) != 0 {
		t.Errorf("%+v", k)
	}

	// Without the install grant its grants are gone as well.
	must(t, second(s.Uninstall(t.Context(), s.op, DefaultOrg, "relay", "", Expect(i.Revision))))
	if s.Snapshot().Orgs.At(DefaultOrg).Biomes.At("relay").Installed != nil || biomeGrants() != 0 {
		t.Error("something of the install grant stands")
	}
	code(t, second(s.InstallOf(s.op, DefaultOrg, "relay", "")), abi.CodeNotFound)
	if got := s.again().Snapshot().Orgs.At(DefaultOrg).Biomes.At("relay"); got.Installed != nil {
		t.Error("a restart brings the install grant back")
	}
}

func second2[T any](_ T, _ bool, err error) error { return err }

// X12, X36, X63: a new upload is callable in sandbox at once and nowhere else; what is installed
// goes on running as it was admitted.
func TestUploadBesideInstall(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	s.grant(ada, notes, "sandbox")
	added := abi.CapabilityRef("notes:note.search@1")
	b := s.upload(DefaultOrg, "notes", 2, notes, added)
	if b.Digest != sum(2) || b.Revision != 2 || b.Stage != grant.SandboxInstalled {
		t.Errorf("%+v", b)
	}
	s.grant(ada, added, "project")
	s.grant(ada, added, "sandbox")
	project, _ := s.session(SessionRequest{Environment: env("project")})
	sandbox, _ := s.session(SessionRequest{Environment: env("sandbox")})
	for _, c := range []struct {
		sess   *session.Session
		ref    abi.CapabilityRef
		code   abi.Code
		digest string
	}{
		{project, notes, "", sum(1)},
		{sandbox, notes, "", sum(2)},
		{project, added, abi.CodeMissingGrant, sum(1)}, // not in what was admitted
		{sandbox, added, "", sum(2)},
	} {
		if _, _, d := s.decide(c.sess, c.ref); d.Code != c.code || d.Digest != c.digest {
			t.Errorf("%s in %s: %q from %s", c.ref, c.sess.Environment, d.Code, d.Digest)
		}
	}
}

// PF-A16, PF-I3: the first provider of a ref stays, in one organisation and across to the
// system's; the same bytes twice are one upload.
func TestRefsAreUnique(t *testing.T) {
	s := start(t, false)
	must(t, second(s.CreateOrg(t.Context(), s.op, "acme")))
	s.upload(DefaultOrg, "notes", 1, notes)
	put := func(org, name string, n int, refs ...abi.CapabilityRef) error {
		_, _, err := s.PutBiome(t.Context(), s.op, BiomeRequest{Org: org, Digest: sum(n), Manifest: manifest(name, refs, abi.Requires{})})
		m, _ := abi.DecodeManifest(manifest(name, refs, abi.Requires{}))
		if early := s.CheckBiome(s.op, org, "", m); abi.CodeOf(early) != abi.CodeOf(err) && err != nil {
			t.Errorf("asked early: %v; in the end: %v", early, err)
		}
		return err
	}
	code(t, put(DefaultOrg, "thief", 2, "thief:own.one@1", notes), abi.CodeCapabilityTaken)
	code(t, put(SystemOrg, "thief", 3, notes), abi.CodeCapabilityTaken)
	must(t, put("acme", "notes", 4, notes)) // another organisation's is its own
	must(t, put(SystemOrg, "base", 5, "base:x.y@1"))
	code(t, put("acme", "thief", 6, "base:x.y@1"), abi.CodeCapabilityTaken)
	code(t, put("acme", "base", 7, "acme:x.y@1"), abi.CodeAlreadyExists)
	if b, _ := s.Snapshot().Route(DefaultOrg, notes, env("sandbox")); b.Name != "notes" || b.Org != DefaultOrg {
		t.Errorf("%+v", b)
	}
	if b, _ := s.Snapshot().Route("acme", "base:x.y@1", env("sandbox")); b == nil || b.Org != SystemOrg {
		t.Errorf("the system's capability is routed to %+v", b)
	}
	// What an older version provided is kept for the biome.
	must(t, put(DefaultOrg, "notes", 8, "notes:note.write@1"))
	code(t, put(DefaultOrg, "thief", 9, notes), abi.CodeCapabilityTaken)

	n := stored(t, s, "upload")
	_, created, err := s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(8), Manifest: manifest("notes", []abi.CapabilityRef{"notes:note.write@1"}, abi.Requires{})})
	must(t, err)
	if created || stored(t, s, "upload") != n {
		t.Error("the same bytes are there twice")
	}
	for _, bad := range []string{"", "x", sum(1)[1:], "ABCDEF" + sum(1)[6:]} {
		code(t, second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: bad, Manifest: manifest("notes", []abi.CapabilityRef{notes}, abi.Requires{})})), abi.CodeInvalidRequest)
	}
	code(t, second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(1), Manifest: []byte(`{"environments":["mine"]}`)})), abi.CodeUnknownField) // X4
}

// X15: a reach record that is taken out of the store is an answer the catalogue cannot give.
func TestReachRemovedFromStore(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	s.grant(ada, notes, "sandbox")
	project, _ := s.session(SessionRequest{Environment: env("project")})
	sandbox, _ := s.session(SessionRequest{Environment: env("sandbox")})
	s.decides(project, notes, "")
	s.decides(sandbox, notes, "")
	must(t, s.store.Update(t.Context(), func(tx store.Tx) error { return tx.Delete(catalogue.Key(DefaultOrg, sum(1), notes)) }))
	s.decides(sandbox, notes, abi.CodeUnclassified)
	if _, _, d := s.decide(project, notes); d.Verdict != gate.Allow || !d.ReachDeferred {
		t.Errorf("%+v", d)
	}
}

// X19, X20: an override holds for its organisation alone, and nothing about the built-in changes.
func TestOverride(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	built := s.Environments()
	sess, _ := s.session(SessionRequest{Environment: env("project")})
	o, err := s.PutOverride(t.Context(), s.op, OverrideRequest{Org: DefaultOrg, Environment: env("project"), MaxData: abi.Internal}, Unstated)
	must(t, err)
	decide := func(c abi.Classification) abi.Code {
		snap := s.Snapshot()
		f := s.Facts(t.Context(), catalogue.Stored{Store: s.store}, snap, sess, notes, c)
		f.Rate, f.Schema = gate.Within, gate.Satisfied
		d := gate.Decide(snap, f)
		return d.Code
	}
	if decide(abi.Internal) != "" || decide(abi.Confidential) != abi.CodeClassificationCeiling {
		t.Error("the override does not hold")
	}
	if !reflect.DeepEqual(built, s.Environments()) {
		t.Error("the built-in changed")
	}
	put := func(c abi.Classification, e Expect) error {
		return second(s.PutOverride(t.Context(), s.op, OverrideRequest{Org: DefaultOrg, Environment: env("project"), MaxData: c}, e))
	}
	code(t, put(abi.Public, Unstated), abi.CodePreconditionNeeded)
	code(t, put(abi.Public, Absent), abi.CodePreconditionFailed)
	code(t, put(abi.Public, 7), abi.CodePreconditionFailed)
	code(t, put(0, Expect(o.Revision)), abi.CodeInvalidRequest) // X17
	must(t, put(abi.Public, Expect(o.Revision)))
	code(t, put(abi.Internal, Expect(o.Revision)), abi.CodePreconditionFailed)
	_, err = s.PutOverride(t.Context(), s.op, OverrideRequest{Org: DefaultOrg, Environment: env("mine"), MaxData: abi.Public}, Unstated)
	code(t, err, abi.CodeUnsupportedRule) // X21
}

// Limits of a built-in are the operator's; resolved values are what is kept.
func TestEnvironmentLimits(t *testing.T) {
	s := start(t, false)
	sess, _ := s.session(SessionRequest{Environment: env("project")})
	e, err := s.SetEnvironmentLimits(t.Context(), s.op, env("project"), map[string]int64{"wall": 100}, 1)
	must(t, err)
	if e.Revision != 2 || e.Limits.Get(abi.LimitWall) != 100 || e.Reach != abi.ReachIntegration {
		t.Errorf("%+v", e)
	}
	_, err = s.SetEnvironmentLimits(t.Context(), s.op, env("project"), map[string]int64{"wall": 200}, Unstated)
	code(t, err, abi.CodePreconditionNeeded)
	_, err = s.SetEnvironmentLimits(t.Context(), s.op, env("project"), map[string]int64{"reach": 3}, 2)
	code(t, err, abi.CodeUnknownField)
	_, err = s.SetEnvironmentLimits(t.Context(), s.op, env("mine"), map[string]int64{"wall": 200}, Unstated)
	code(t, err, abi.CodeNotFound)
	again := s.again()
	if got := again.Snapshot().EnvironmentIn("", env("project")); got.Limits.Get(abi.LimitWall) != 100 || got.Revision != 2 {
		t.Errorf("after a restart: %+v", got)
	}
	s.notesInProject()
	snap, f, d := s.decide(sess, notes)
	a := s.Authorize(snap, f, &d, "inv", time.Time{}, nil)
	if got := a.Spec().Deadline.Sub(noon); got != 100*time.Millisecond {
		t.Errorf("an invocation has %s", got)
	}
}

// X23, X70: spaces are made as tight as what is around them, or tighter; containing one grants
// nothing in it.
func TestSpaces(t *testing.T) {
	s := start(t, false)
	add := func(r SpaceRequest) error {
		r.Org = DefaultOrg
		return second(s.CreateSpace(t.Context(), s.op, r))
	}
	must(t, add(SpaceRequest{ID: "clinic", Kind: space.Project, Parent: RootSpace, Floor: abi.Confidential, Clearance: abi.Secret}))
	code(t, add(SpaceRequest{ID: "loose", Kind: space.App, Parent: "clinic", Floor: abi.Internal}), abi.CodeCeilingLoosened)
	code(t, add(SpaceRequest{ID: "loose", Kind: space.App, Parent: "clinic", Clearance: abi.Regulated}), abi.CodeCeilingLoosened)
	code(t, add(SpaceRequest{ID: "clinic", Kind: space.Project, Parent: RootSpace}), abi.CodeAlreadyExists)
	code(t, add(SpaceRequest{ID: "lost", Kind: space.Project, Parent: "none"}), abi.CodeNotFound)
	code(t, add(SpaceRequest{ID: "bea", Kind: space.User, Parent: RootSpace}), abi.CodeInvalidRequest)
	code(t, add(SpaceRequest{ID: "sys", Kind: space.System}), abi.CodeInvalidRequest)
	must(t, add(SpaceRequest{ID: "ward", Kind: space.App, Parent: "clinic"}))
	must(t, add(SpaceRequest{ID: "bea", Kind: space.User}))
	if got := s.Snapshot().Orgs.At(DefaultOrg).Spaces.At("ward"); got.Floor != abi.Confidential || got.Clearance != abi.Secret {
		t.Errorf("%+v", got)
	}
	// A session in the ward starts at its floor, and a right elsewhere is none there.
	s.notesInProject()
	sess, _ := s.session(SessionRequest{Space: "ward", Environment: env("project")})
	if _, _, d := s.decide(sess, notes); d.Start != abi.Confidential || d.Ceiling != abi.Secret {
		t.Errorf("%s to %s", d.Start, d.Ceiling)
	}
	root, _ := s.session(SessionRequest{Subject: "user:root", Space: "bea"})
	s.decides(root, notes, abi.CodeMissingGrant)
}

// Grants made together are all made or none, each is named in the event, and one right is not
// made twice by one request.
func TestGrantsTogether(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	request := func(subject string) GrantRequest {
		return GrantRequest{Org: DefaultOrg, Subject: abi.Subject(subject), Capability: notes, Environment: env("project")}
	}
	made, err := s.CreateGrants(t.Context(), s.op, DefaultOrg, []GrantRequest{request("user:one"), request("user:two")})
	must(t, err)
	if len(made) != 2 || s.audit.last().Target != made[0].ID+" "+made[1].ID {
		t.Errorf("%+v, recorded as %+v", made, s.audit.last())
	}
	before := s.Snapshot()
	for name, c := range map[string]struct {
		code abi.Code
		rs   []GrantRequest
	}{
		"none":          {abi.CodeInvalidRequest, nil},
		"too many":      {abi.CodeInvalidRequest, make([]GrantRequest, MaxTogether+1)},
		"twice":         {abi.CodeAlreadyExists, []GrantRequest{request("user:three"), request("user:three")}},
		"one of before": {abi.CodeAlreadyExists, []GrantRequest{request("user:three"), request("user:one")}},
		"one is bad":    {abi.CodeInvalidRequest, []GrantRequest{request("user:three"), request("nobody")}},
		"elsewhere":     {abi.CodeNotFound, []GrantRequest{{Org: "acme", Subject: ada, Capability: notes, Environment: env("project")}}},
	} {
		if _, err := s.CreateGrants(t.Context(), s.op, DefaultOrg, c.rs); abi.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if s.Snapshot() != before {
		t.Error("some were made")
	}
}

// A listing comes in pages, in order and without a gap, whatever is asked for; a restart lists
// the same.
func TestGrantPages(t *testing.T) {
	s := start(t, false)
	s.upload(DefaultOrg, "notes", 1, notes)
	var rs []GrantRequest
	for i := range 25 {
		rs = append(rs, GrantRequest{Org: DefaultOrg, Subject: abi.Subject(fmt.Sprintf("user:u%d", i%5)), Capability: notes, Environment: env([]string{"project", "org", "sandbox", "app", "session"}[i/5])})
	}
	made, err := s.CreateGrants(t.Context(), s.op, DefaultOrg, rs)
	must(t, err)
	must(t, second(s.RevokeGrant(t.Context(), s.op, DefaultOrg, made[3].ID)))
	for _, who := range []*server{s, s.again()} {
		for subject, want := range map[abi.Subject]int{"": 25, "user:u3": 5, "user:none": 0} {
			seen := map[string]bool{}
			revoked := 0
			last := ""
			for cut := (Cut{Limit: 4}); ; {
				p, err := who.Grants(t.Context(), s.op, DefaultOrg, subject, "", cut)
				must(t, err)
				for _, g := range p.Items {
					if seen[g.ID] || g.ID <= last || len(p.Items) > 4 {
						t.Fatalf("%s after %s in a page of %d", g.ID, last, len(p.Items))
					}
					seen[g.ID], last = true, g.ID
					if g.Revoked != nil {
						revoked++
					}
				}
				if cut.After = p.Next; p.Next == "" {
					break
				}
			}
			if wantRevoked := min(want, 1); len(seen) != want || revoked != wantRevoked {
				t.Errorf("%q: %d listed, %d of them revoked", subject, len(seen), revoked)
			}
		}
	}
}

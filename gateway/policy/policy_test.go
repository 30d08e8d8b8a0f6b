package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/host/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder keeps events. It fails while broken is set.
type recorder struct {
	mu     sync.Mutex
	events []Event
	broken error
	before func(Event)
}

func (r *recorder) Admin(_ context.Context, e Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	r.events = append(r.events, e)
	if r.before != nil {
		r.before(e)
	}
	return nil
}

func (r *recorder) last() Event { return r.events[len(r.events)-1] }

// server is a policy service over a real store.
type server struct {
	*Service
	t     testing.TB
	store store.Store
	audit *recorder
	first First
	op    session.Principal // the operator
	now   time.Time
}

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func start(t testing.TB, dev bool) *server {
	t.Helper()
	st, err := badger.OpenMemory()
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return startOn(t, st, dev, 0)
}

func startOn(t testing.TB, st store.Store, dev bool, sessions int64) *server {
	t.Helper()
	s := &server{t: t, store: st, audit: &recorder{}, now: noon}
	var err error
	s.Service, err = Open(t.Context(), st, Options{Dev: dev, Auditor: s.audit, Sessions: sessions, Clock: func() time.Time { return s.now }})
	must(t, err)
	s.first, err = s.Bootstrap(t.Context())
	must(t, err)
	if s.first.OperatorToken != "" {
		s.op, err = s.Principal(s.first.OperatorToken)
		must(t, err)
	} else {
		s.op = session.Principal{ID: operatorPrincipal, Org: DefaultOrg, Role: session.Operator}
	}
	return s
}

// again opens another service over the same store, as after a restart.
func (s *server) again() *server {
	next := startOn(s.t, s.store, s.dev, s.maxSessions)
	next.now = s.now
	return next
}

// tester is what a test and a draw of a property have in common. What is opened for a draw is closed after it.
type tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
	Context() context.Context
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func code(t testing.TB, err error, want abi.Code) {
	t.Helper()
	if got := abi.CodeOf(err); got != want {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
}

// manifest of a biome that provides refs and requires what is given.
func manifest(name string, refs []abi.CapabilityRef, requires abi.Requires, change ...func(*abi.Manifest)) []byte {
	m := abi.Manifest{Name: name, Version: "1.0.0", ABI: abi.Version, Requires: requires}
	for i, r := range refs {
		m.Provides = append(m.Provides, abi.Descriptor{
			Ref: r, Export: fmt.Sprintf("run%d", i), Title: "t", Summary: "s", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{}`),
			RiskTier: abi.RiskLow, OutputClassification: abi.Public, Reach: abi.ReachOwner,
		})
	}
	for _, c := range change {
		c(&m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

const (
	notes = abi.CapabilityRef("notes:note.read@1")
	relay = abi.CapabilityRef("relay:call.make@1")
	ada   = abi.Subject("user:ada")
)

// all is as much of a listing as a test has.
var all = Cut{Limit: 1000}

func sum(n int) string { return fmt.Sprintf("%064x", n) }

func env(slug string) abi.EnvironmentRef { return abi.MakeEnvironmentRef(slug) }

// upload puts a biome that provides the refs.
func (s *server) upload(org, name string, n int, refs ...abi.CapabilityRef) Biome {
	s.t.Helper()
	b, _, err := s.PutBiome(s.t.Context(), s.op, BiomeRequest{Org: org, Digest: sum(n), Manifest: manifest(name, refs, abi.Requires{})})
	must(s.t, err)
	return b
}

func (s *server) install(r InstallRequest) grant.Install {
	s.t.Helper()
	i, err := s.Install(s.t.Context(), s.op, r, Unstated)
	must(s.t, err)
	return i
}

func (s *server) grant(subject abi.Subject, ref abi.CapabilityRef, slug string) grant.Grant {
	s.t.Helper()
	g, err := s.CreateGrant(s.t.Context(), s.op, GrantRequest{Org: DefaultOrg, Subject: subject, Capability: ref, Environment: env(slug)})
	must(s.t, err)
	return g
}

// notesInProject is the usual beginning: notes installed and granted to ada in project.
func (s *server) notesInProject() grant.Grant {
	s.t.Helper()
	s.upload(DefaultOrg, "notes", 1, notes)
	s.install(InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(1), Environments: []abi.EnvironmentRef{env("project")}})
	return s.grant(ada, notes, "project")
}

func (s *server) session(r SessionRequest) (*session.Session, string) {
	s.t.Helper()
	if r.Org == "" {
		r.Org = DefaultOrg
	}
	if r.Subject == "" {
		r.Subject = ada
	}
	_, token, err := s.OpenSession(s.t.Context(), s.op, r)
	must(s.t, err)
	sess, err := s.Invoker(token)
	must(s.t, err)
	return sess, token
}

// decide is what the data plane does.
func (s *server) decide(sess *session.Session, ref abi.CapabilityRef) (*gate.Snapshot, *gate.Facts, gate.Decision) {
	snap := s.Snapshot()
	f := s.Facts(s.t.Context(), catalogue.Stored{Store: s.store}, snap, sess, ref, 0)
	f.Rate, f.Schema = gate.Within, gate.Satisfied
	return snap, f, gate.Decide(snap, f)
}

func (s *server) decides(sess *session.Session, ref abi.CapabilityRef, want abi.Code) {
	s.t.Helper()
	if _, _, d := s.decide(sess, ref); d.Code != want {
		s.t.Errorf("%q, want %q: %+v", d.Code, want, d.Explain())
	}
}

func TestBootstrapOnce(t *testing.T) {
	s := start(t, false)
	if s.first.OperatorToken == "" || s.first.DevToken != "" {
		t.Error("the first start hands out the operator's token alone")
	}
	if s.op != (session.Principal{ID: "operator", Org: "default", Role: session.Operator, Clearance: abi.Regulated}) {
		t.Errorf("%+v", s.op)
	}
	orgs, err := s.Orgs(s.op)
	must(t, err)
	if len(orgs) != 2 || orgs[0].ID != "default" || orgs[1].ID != "system" {
		t.Errorf("%+v", orgs)
	}
	again := s.again()
	if again.first != (First{}) {
		t.Error("a later start hands out tokens")
	}
	if _, err := again.Principal(s.first.OperatorToken); err != nil {
		t.Errorf("the operator's token after a restart: %v", err)
	}
}

// The first tokens are kept before they are good; when that fails the first start is still to
// come.
func TestFirstTokensAreKept(t *testing.T) {
	st, err := badger.OpenMemory()
	must(t, err)
	defer st.Close()
	var kept First
	fail := errors.New("disk full")
	first := func() (*Service, First, error) {
		s, err := Open(t.Context(), st, Options{Auditor: &recorder{}, Keep: func(f First) error { kept = f; return fail }})
		must(t, err)
		f, err := s.Bootstrap(t.Context())
		return s, f, err
	}
	s, f, err := first()
	code(t, err, abi.CodeInternal)
	if f != (First{}) || s.Snapshot().Orgs.Len() != 0 {
		t.Error("something was made")
	}
	lost := kept
	fail = nil
	s, f, err = first()
	must(t, err)
	if f != kept || kept == lost {
		t.Error("the tokens that were kept are not the ones that are good")
	}
	must(t, second(s.Principal(kept.OperatorToken)))
	code(t, second(s.Principal(lost.OperatorToken)), abi.CodeUnauthenticated)
}

// A caller that goes away after its change was recorded does not stop it half way.
func TestCallerLeaves(t *testing.T) {
	s := start(t, false)
	s.upload(DefaultOrg, "notes", 1, notes)
	ctx, leave := context.WithCancel(t.Context())
	s.audit.before = func(Event) { leave() }
	_, err := s.CreateGrant(ctx, s.op, GrantRequest{Org: DefaultOrg, Subject: ada, Capability: notes, Environment: env("org")})
	must(t, err)
	if stored(t, s, "grant") != 1 {
		t.Error("recorded as made, and not made")
	}
}

// X7, S19: trusted-dev is for sessions in development spaces of a server in development mode.
func TestDevSession(t *testing.T) {
	s := start(t, true)
	sess, err := s.Invoker(s.first.DevToken)
	must(t, err)
	if sess.Subject != "user:dev" || sess.Environment != env("trusted-dev") || sess.Space != "dev" || !sess.Dev || sess.Workspace == "" {
		t.Errorf("%+v", sess)
	}
	s.upload(DefaultOrg, "notes", 1, notes)
	s.decides(sess, notes, "")

	_, err = s.CreateSpace(t.Context(), s.op, SpaceRequest{Org: DefaultOrg, ID: "prod", Kind: space.Project, Parent: RootSpace, Production: true})
	must(t, err)
	_, err = s.CreateSpace(t.Context(), s.op, SpaceRequest{Org: DefaultOrg, ID: "inside", Kind: space.App, Parent: "prod"})
	must(t, err)
	for _, id := range []string{"prod", "inside"} {
		_, _, err = s.OpenSession(t.Context(), s.op, SessionRequest{Org: DefaultOrg, Subject: ada, Space: id, Environment: env("trusted-dev")})
		code(t, err, abi.CodeEnvironmentUnusable)
	}

	// The same directory without --dev: the session is there, its environment is not.
	plain := startOn(t, s.store, false, 0)
	sess, err = plain.Invoker(s.first.DevToken)
	must(t, err)
	plain.decides(sess, notes, abi.CodeEnvironmentUnusable)
	_, _, err = plain.OpenSession(t.Context(), plain.op, SessionRequest{Org: DefaultOrg, Subject: ada, Space: "dev", Environment: env("trusted-dev")})
	code(t, err, abi.CodeEnvironmentUnusable)

	// A directory made without --dev, served with it: its spaces are no development spaces.
	old := start(t, false)
	asDev := startOn(t, old.store, true, 0)
	_, _, err = asDev.OpenSession(t.Context(), asDev.op, SessionRequest{Org: DefaultOrg, Subject: ada, Environment: env("trusted-dev")})
	code(t, err, abi.CodeEnvironmentUnusable)
}

// Recorded before it acts: when the event is taken nothing has changed; when it cannot be taken
// nothing changes at all.
func TestChangesAreRecordedFirst(t *testing.T) {
	s := start(t, false)
	s.upload(DefaultOrg, "notes", 1, notes)
	before := s.Snapshot()
	s.audit.before = func(e Event) {
		if s.Snapshot() != before || stored(t, s, "grant") != 0 {
			t.Error("it was made before it was recorded")
		}
	}
	g := s.grant(ada, notes, "project")
	if e := s.audit.last(); e.Name != "grant.created" || e.Target != g.ID || e.Principal != "principal:default/operator" || e.Code != "" || e.Generation != s.Snapshot().Generation {
		t.Errorf("%+v", e)
	}
	s.audit.before = nil

	before = s.Snapshot()
	s.audit.broken = errors.New("disk full")
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	code(t, err, abi.CodeAuditUnavailable)
	_, err = s.CreateGrant(t.Context(), s.op, GrantRequest{Org: DefaultOrg, Subject: ada, Capability: notes, Environment: env("org")})
	code(t, err, abi.CodeAuditUnavailable)
	if s.Snapshot() != before || stored(t, s, "grant") != 1 || stored(t, s, "revocation") != 0 {
		t.Error("it was made without being recorded")
	}
	silent, err := Open(t.Context(), s.store, Options{})
	must(t, err)
	_, err = silent.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	code(t, err, abi.CodeAuditUnavailable)
}

// stored counts the records of a kind in the store.
func stored(t testing.TB, s *server, kind string) (n int) {
	t.Helper()
	must(t, s.store.View(t.Context(), func(tx store.Tx) error {
		return tx.Scan(prefixOf(kind), nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
	}))
	return n
}

// A change that the store does not take leaves everything as it was, and says so in the log.
func TestFailedCommitChangesNothing(t *testing.T) {
	s := start(t, false)
	s.upload(DefaultOrg, "notes", 1, notes)
	before := s.Snapshot()
	must(t, s.store.Close())
	_, err := s.CreateGrant(t.Context(), s.op, GrantRequest{Org: DefaultOrg, Subject: ada, Capability: notes, Environment: env("org")})
	code(t, err, abi.CodeNotReady)
	if now := s.Snapshot(); now.Generation != before.Generation || now.Orgs != before.Orgs || !now.Stale || s.audit.last().Code != abi.CodeNotReady {
		t.Errorf("%+v", s.audit.last())
	}
	if s.Snapshot().Orgs.At(DefaultOrg).Grants.Len() != 0 {
		t.Error("a grant that was not written counts")
	}
}

// P6: events hold names of fields; no value of a request, and no secret, gets into one.
func TestEventsHoldNoValues(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	_, err := s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: "key", Uses: json.RawMessage(`[{"kind":"canary"}]`), Seal: sealed("canary")}, Unstated)
	must(t, err)
	_, err = s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "api", Rule: rule("canary.example")}, Unstated)
	must(t, err)
	_, token := s.session(SessionRequest{Subject: "user:canary"})
	_, principal, err := s.IssueToken(t.Context(), s.op, TokenRequest{Org: DefaultOrg, Principal: "ann", Role: session.Auditor})
	must(t, err)
	data, err := json.Marshal(s.audit.events)
	must(t, err)
	for _, value := range []string{"canary", token, principal, s.first.OperatorToken, token[32:], principal[32:]} {
		if strings.Contains(string(data), value) {
			t.Errorf("the events hold %q", value)
		}
	}
	for _, e := range s.audit.events {
		if want, ok := map[string]string{"grant.created": "globs", "secret.updated": "value", "endpoint.updated": "rule"}[e.Name]; ok && !slices.Contains(e.Fields, want) {
			t.Errorf("%s does not name the field %s: %q", e.Name, want, e.Fields)
		}
	}
	for _, kind := range []string{"token", "session"} { // PF-F11
		must(t, s.store.View(t.Context(), func(tx store.Tx) error {
			return tx.Scan(prefixOf(kind), nil, func(_, v []byte) (bool, error) {
				for _, text := range []string{token[32:], principal[32:], s.first.OperatorToken[32:]} {
					if strings.Contains(string(v), text) {
						t.Errorf("a stored %s holds a token", kind)
					}
				}
				return true, nil
			})
		}))
	}
}

func sealed(text string) func(uint64) (json.RawMessage, error) {
	return func(version uint64) (json.RawMessage, error) {
		return json.Marshal(map[string]any{"box": text, "for": version})
	}
}

func rule(host string) egress.Rule {
	return egress.Rule{Scheme: "https", Host: host, Methods: []string{"GET"}, Path: "/v1/**"}
}

// calls is every operation of the service, as a request that the operator would be allowed.
func calls(s *server) map[Op]func(p session.Principal, org string) error {
	ctx := s.t.Context()
	return map[Op]func(session.Principal, string) error{
		OpRead: func(p session.Principal, org string) error {
			return firstForbidden(
				second(s.Spaces(p, org)), second(s.Grants(ctx, p, org, "", "", all)), second(s.EnvironmentGrants(ctx, p, org, all)), second(s.EnvironmentGrant(p, org, "x")), second(s.ApproveGrants(ctx, p, org, all)), second(s.Biome(p, org, "x")), second(s.Biomes(p, org)),
				second(s.Uploads(p, org, "x")), second(s.InstallOf(p, org, "x", "")), second(s.Installs(p, org)), second(s.Overrides(p, org)), second(s.Endpoints(p, org)))
		},
		OpReadGuarded: func(p session.Principal, org string) error {
			return firstForbidden(second(s.Secrets(p, org)), second(s.Tokens(ctx, p, org, all)), second(s.Session(ctx, p, org, "x")), second(s.Sessions(ctx, p, org, all)))
		},
		OpReadAudit:     func(p session.Principal, org string) error { return Allowed(p, OpReadAudit, org) },
		OpReadAuditHead: func(p session.Principal, org string) error { return Allowed(p, OpReadAuditHead, org) },
		OpOrgCreate:     func(p session.Principal, org string) error { return second(s.CreateOrg(ctx, p, org)) },
		OpSpaceCreate: func(p session.Principal, org string) error {
			return second(s.CreateSpace(ctx, p, SpaceRequest{Org: org}))
		},
		OpGrantCreate: func(p session.Principal, org string) error {
			return second(s.CreateGrant(ctx, p, GrantRequest{Org: org}))
		},
		OpGrantRevoke: func(p session.Principal, org string) error { return second(s.RevokeGrant(ctx, p, org, "x")) },
		OpEnvGrant: func(p session.Principal, org string) error {
			return second(s.CreateEnvironmentGrant(ctx, p, EnvironmentGrantRequest{Org: org}))
		},
		OpEnvRevoke: func(p session.Principal, org string) error { return second(s.RevokeEnvironmentGrant(ctx, p, org, "x")) },
		OpUpload: func(p session.Principal, org string) error {
			_, _, err := s.PutBiome(ctx, p, BiomeRequest{Org: org})
			return firstForbidden(err, s.CheckBiome(p, org, "", &abi.Manifest{}))
		},
		OpDisable: func(p session.Principal, org string) error {
			return second(s.SetBiomeDisabled(ctx, p, org, "x", true, Unstated))
		},
		OpEnable: func(p session.Principal, org string) error {
			return second(s.SetBiomeDisabled(ctx, p, org, "x", false, Unstated))
		},
		OpInstall: func(p session.Principal, org string) error {
			return second(s.Install(ctx, p, InstallRequest{Org: org}, Unstated))
		},
		OpUninstall: func(p session.Principal, org string) error {
			return second(s.Uninstall(ctx, p, org, "x", "", Unstated))
		},
		OpDeclassify: func(p session.Principal, org string) error {
			return second(s.RequestApproval(ctx, Ask{By: p, Request: approval.Request{Org: org}, Facts: &gate.Facts{Org: org}}))
		},
		OpPromote: func(p session.Principal, org string) error {
			return second(s.Promote(ctx, p, InstallRequest{Org: org}))
		},
		OpRollback: func(p session.Principal, org string) error { return second(s.Rollback(ctx, p, org, "x", Unstated)) },
		OpArchive:  func(p session.Principal, org string) error { return second(s.Archive(ctx, p, org, "x", Unstated)) },
		OpLifecycle: func(p session.Principal, org string) error {
			return second(s.SetLifecycle(ctx, p, LifecycleRequest{Org: org}, Unstated))
		},
		OpLimits: func(p session.Principal, org string) error {
			return second(s.SetEnvironmentLimits(ctx, p, env("x"), nil, Unstated))
		},
		OpOverride: func(p session.Principal, org string) error {
			return second(s.PutOverride(ctx, p, OverrideRequest{Org: org}, Unstated))
		},
		OpOverrideDrop: func(p session.Principal, org string) error { return s.RemoveOverride(ctx, p, org, env("x"), Unstated) },
		OpEnvCreate: func(p session.Principal, org string) error {
			_, created := s.CreateEnvironment(ctx, p, EnvironmentRequest{Org: org})
			_, changed := s.ReplaceEnvironment(ctx, p, EnvironmentRequest{Org: org, Slug: "x"}, Unstated)
			return firstForbidden(created, changed)
		},
		OpEnvDelete: func(p session.Principal, org string) error { return s.DeleteEnvironment(ctx, p, org, "x", Unstated) },
		OpRates: func(p session.Principal, org string) error {
			return second(s.PutRates(ctx, p, RatesRequest{Org: org}, Unstated))
		},
		OpEndpointPut: func(p session.Principal, org string) error {
			return second(s.PutEndpoint(ctx, p, EndpointRequest{Org: org}, Unstated))
		},
		OpEndpointDrop: func(p session.Principal, org string) error { return s.RemoveEndpoint(ctx, p, org, "x", Unstated) },
		OpSecretPut: func(p session.Principal, org string) error {
			return second(s.PutSecret(ctx, p, SecretRequest{Org: org}, Unstated))
		},
		OpSecretDrop: func(p session.Principal, org string) error { return s.RemoveSecret(ctx, p, org, "x", Unstated) },
		OpSessionOpen: func(p session.Principal, org string) error {
			_, _, err := s.OpenSession(ctx, p, SessionRequest{Org: org})
			return err
		},
		OpSessionClose: func(p session.Principal, org string) error { return second(s.CloseSession(ctx, p, org, "x")) },
		OpTokenIssue: func(p session.Principal, org string) error {
			_, _, err := s.IssueToken(ctx, p, TokenRequest{Org: org})
			return err
		},
		OpTokenRevoke: func(p session.Principal, org string) error { return s.RevokeToken(ctx, p, org, "x") },
		OpReadApprovals: func(p session.Principal, org string) error {
			return firstForbidden(second(s.Approval(ctx, p, org, "x")), second(s.Approvals(ctx, p, org, "", all)))
		},
		OpApprovalApprove: func(p session.Principal, org string) error {
			return second(s.DecideApproval(ctx, p, org, "x", approval.Approve, ""))
		},
		OpApprovalReject: func(p session.Principal, org string) error {
			return second(s.DecideApproval(ctx, p, org, "x", approval.Reject, ""))
		},
		OpApproveGrant: func(p session.Principal, org string) error {
			return second(s.CreateApproveGrant(ctx, p, ApproveGrantRequest{Org: org}))
		},
		OpApproveRevoke: func(p session.Principal, org string) error { return second(s.RevokeApproveGrant(ctx, p, org, "x")) },
	}
}

func second[T any](_ T, err error) error { return err }

// firstForbidden is FORBIDDEN when every error is, and something else otherwise.
func firstForbidden(errs ...error) error {
	for _, err := range errs {
		if abi.CodeOf(err) != abi.CodeForbidden {
			return errors.New("one was let through")
		}
	}
	return errs[0]
}

// Every operation asks the one table of roles: each role, in its own organisation and in
// another, there or not.
func TestRoles(t *testing.T) {
	s := start(t, false)
	must(t, second(s.CreateOrg(t.Context(), s.op, "acme")))
	all := calls(s)
	for op, allowed := range roles {
		call := all[op]
		if call == nil {
			t.Errorf("%s is never asked for", op)
			continue
		}
		for _, role := range append(anyone, "", "root") {
			for _, org := range []string{"acme", DefaultOrg, "nowhere"} {
				p := session.Principal{ID: "someone", Org: "acme", Role: role}
				may := slices.Contains(allowed, role) && (role == session.Operator || org == "acme")
				if op == OpLimits || op == OpOrgCreate {
					may = role == session.Operator
				}
				err := call(p, org)
				if forbidden := abi.CodeOf(err) == abi.CodeForbidden; forbidden == may {
					t.Errorf("%s of acme, %s in %s: %v", role, op, org, err)
				}
			}
		}
	}
	if len(all) != len(roles) {
		t.Errorf("%d operations, %d in the table", len(all), len(roles))
	}
}

// No exported method changes policy without being in the table above.
func TestEveryMethodIsGuarded(t *testing.T) {
	open := map[string]bool{
		"Snapshot": true, "Now": true, "OnChange": true, "Bootstrap": true, "Authenticate": true, "Principal": true, "Invoker": true, "Release": true,
		"Facts": true, "ChildFacts": true, "Authorize": true, "Environments": true, "SealedSecret": true,
		// Of the gateway's own, for what a session asked and the gate decided.
		"RequestApproval": true, "WithdrawApproval": true, "UseApproval": true, "SettleApproval": true, "Unsettled": true, "Standing": true, "Kept": true, "OpenSessionOf": true,
		"PurgeApprovals": true, "Collect": true,
		"Pending": true, // a number of the whole gateway, for its metrics
		// They change nothing but whether policy is trusted.
		"Probe": true, "Watch": true,
	}
	typ := reflect.TypeFor[*Service]()
	who := reflect.TypeFor[session.Principal]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		asks := false
		for j := range m.Type.NumIn() {
			asks = asks || m.Type.In(j) == who
		}
		if asks == open[m.Name] {
			t.Errorf("%s asks for a principal: %v", m.Name, asks)
		}
	}
}

package policy

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// S19, PF-A22: a session's token opens no session and administers nothing; a principal's
// invokes nothing.
func TestTokensDoNotMix(t *testing.T) {
	s := start(t, false)
	_, token := s.session(SessionRequest{})
	_, err := s.Principal(token)
	code(t, err, abi.CodeForbidden)
	_, err = s.Invoker(s.first.OperatorToken)
	code(t, err, abi.CodeForbidden)
	for _, bad := range []string{"", "eco_s_", "eco_p_" + token[6:], token + "x", "Bearer " + token} {
		code(t, second(s.Authenticate(bad)), abi.CodeUnauthenticated)
		code(t, second(s.Principal(bad)), abi.CodeUnauthenticated)
		code(t, second(s.Invoker(bad)), abi.CodeUnauthenticated)
	}
	// Who has no principal has no session to open (the zero principal stands for a caller that
	// was let through without one).
	_, _, err = s.OpenSession(t.Context(), session.Principal{}, SessionRequest{Org: DefaultOrg, Subject: ada})
	code(t, err, abi.CodeForbidden)
}

// X30, X36, S19: an environment grant opens one principal's sessions for one subject in one
// environment; what was asked for by name and is not granted has its own code.
func TestEnvironmentGrant(t *testing.T) {
	s := start(t, false)
	_, text, err := s.IssueToken(t.Context(), s.op, TokenRequest{Org: DefaultOrg, Principal: "ann", Role: session.Author})
	must(t, err)
	ann, err := s.Principal(text)
	must(t, err)
	open := func(subject abi.Subject, e abi.EnvironmentRef) error {
		_, _, err := s.OpenSession(t.Context(), ann, SessionRequest{Org: DefaultOrg, Subject: subject, Environment: e})
		return err
	}
	code(t, open(ada, env("sandbox")), abi.CodeRequestNotGranted)
	until := noon.Add(time.Hour)
	g, err := s.CreateEnvironmentGrant(t.Context(), s.op, EnvironmentGrantRequest{Org: DefaultOrg, Principal: "ann", Subject: ada, Environment: env("sandbox"), Expires: &until})
	must(t, err)
	must(t, open(ada, env("sandbox")))
	code(t, open(ada, env("org")), abi.CodeRequestNotGranted)
	code(t, open(ada, ""), abi.CodeForbidden) // the space's default is org
	code(t, open("user:eve", env("sandbox")), abi.CodeRequestNotGranted)
	s.now = until
	code(t, open(ada, env("sandbox")), abi.CodeRequestNotGranted)
	s.now = noon
	must(t, second(s.RevokeEnvironmentGrant(t.Context(), s.op, DefaultOrg, g.ID)))
	code(t, open(ada, env("sandbox")), abi.CodeRequestNotGranted)
}

// X31: a session that names no environment gets its space's.
func TestSessionDefaults(t *testing.T) {
	s := start(t, false)
	for id, r := range map[string]SpaceRequest{
		"project": {Kind: space.Project, Parent: RootSpace},
		"app":     {Kind: space.App, Parent: RootSpace},
		"sandbox": {Kind: space.Biome, Parent: RootSpace},
		"session": {Kind: space.Session, Parent: RootSpace},
	} {
		r.Org, r.ID = DefaultOrg, id
		must(t, second(s.CreateSpace(t.Context(), s.op, r)))
		if sess, _ := s.session(SessionRequest{Space: id}); sess.Environment != env(id) || sess.Space != id {
			t.Errorf("%s: %+v", id, sess)
		}
	}
	if sess, _ := s.session(SessionRequest{}); sess.Environment != env("org") || sess.Space != RootSpace || sess.Workspace != "" || sess.Clearance != abi.Regulated || sess.Mark != abi.Public {
		t.Errorf("%+v", sess)
	}
	if sess, _ := s.session(SessionRequest{Files: true}); sess.Workspace != sess.ID { // M1: the server names the workspace
		t.Errorf("%+v", sess)
	}
}

func TestSessionRefusals(t *testing.T) {
	s := start(t, false)
	must(t, second(s.CreateSpace(t.Context(), s.op, SpaceRequest{Org: DefaultOrg, ID: "low", Kind: space.Project, Parent: RootSpace, Clearance: abi.Internal})))
	past, far := noon.Add(-1), noon.Add(MaxSession+time.Second)
	for name, c := range map[string]struct {
		code    abi.Code
		pointer string
		r       SessionRequest
	}{
		"space":        {abi.CodeNotFound, "/space", SessionRequest{Subject: ada, Space: "none"}},
		"environment":  {abi.CodeNotFound, "/environment", SessionRequest{Subject: ada, Environment: env("mine")}},
		"trusted-dev":  {abi.CodeEnvironmentUnusable, "/environment", SessionRequest{Subject: ada, Environment: env("trusted-dev")}},
		"clearance":    {abi.CodeCeilingLoosened, "/clearance", SessionRequest{Subject: ada, Space: "low", Clearance: abi.Secret}},
		"biome":        {abi.CodeInvalidRequest, "/subject", SessionRequest{Subject: "biome:notes"}},
		"no subject":   {abi.CodeInvalidRequest, "/subject", SessionRequest{}},
		"no user":      {abi.CodeInvalidRequest, "/user", SessionRequest{Subject: "agent:bot"}},
		"past":         {abi.CodeInvalidRequest, "/expires", SessionRequest{Subject: ada, Expires: &past}},
		"too far away": {abi.CodeInvalidRequest, "/expires", SessionRequest{Subject: ada, Expires: &far}},
	} {
		t.Run(name, func(t *testing.T) {
			c.r.Org = DefaultOrg
			_, token, err := s.OpenSession(t.Context(), s.op, c.r)
			code(t, err, c.code)
			if got := abi.AsError(err).Pointer; got != c.pointer || token != "" {
				t.Errorf("it points at %q", got)
			}
			if stored(t, s, "session") != 0 || stored(t, s, "token") != 1 {
				t.Error("something was stored")
			}
		})
	}
}

// PF-D1: the limit of open sessions bites, closed and expired ones do not count.
func TestSessionLimit(t *testing.T) {
	st := start(t, false).store
	s := startOn(t, st, false, 3)
	must(t, second(s.CreateOrg(t.Context(), s.op, "acme")))
	open := func(org string) error {
		_, _, err := s.OpenSession(t.Context(), s.op, SessionRequest{Org: org, Subject: ada})
		return err
	}
	for range 3 {
		must(t, open(DefaultOrg))
	}
	code(t, open(DefaultOrg), abi.CodeQuotaExceeded)
	must(t, open("acme"))
	opened, err := s.Sessions(t.Context(), s.op, DefaultOrg, Cut{Limit: 1})
	must(t, err)
	must(t, second(s.CloseSession(t.Context(), s.op, DefaultOrg, opened.Items[0].ID)))
	must(t, open(DefaultOrg))
	code(t, open(DefaultOrg), abi.CodeQuotaExceeded)
	again := s.again()
	_, _, err = again.OpenSession(t.Context(), s.op, SessionRequest{Org: DefaultOrg, Subject: ada})
	code(t, err, abi.CodeQuotaExceeded)
	s.now = noon.Add(DefaultSession)
	must(t, open(DefaultOrg))
}

// A closed session and an expired one are the same to who presents their token.
func TestSessionEnds(t *testing.T) {
	s := start(t, false)
	closing, closed := s.session(SessionRequest{})
	soon := noon.Add(time.Minute)
	_, expired := s.session(SessionRequest{Expires: &soon})
	got, err := s.CloseSession(t.Context(), s.op, DefaultOrg, closing.ID)
	must(t, err)
	if got.Closed == nil {
		t.Error("it is not said to be closed")
	}
	s.now = soon
	for _, who := range []*server{s, s.again()} {
		_, e1 := who.Invoker(closed)
		_, e2 := who.Invoker(expired)
		code(t, e1, abi.CodeUnauthenticated)
		if diff := cmp.Diff(e1.Error(), e2.Error()); diff != "" {
			t.Error(diff)
		}
		code(t, who.Release(t.Context(), closing.ID, abi.Public), abi.CodeGrantRevoked)
	}
	ended, err := s.Sessions(t.Context(), s.op, DefaultOrg, all)
	must(t, err)
	list := ended.Items
	if len(list) != 2 || (list[0].Closed == nil) == (list[1].Closed == nil) {
		t.Errorf("%+v", list)
	}
	page, err := s.Sessions(t.Context(), s.op, DefaultOrg, Cut{After: list[0].ID, Limit: 1})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].ID != list[1].ID || page.Next != "" {
		t.Errorf("%+v", page)
	}
	must(t, second(s.CloseSession(t.Context(), s.op, DefaultOrg, closing.ID)))
	code(t, second(s.CloseSession(t.Context(), s.op, "system", closing.ID)), abi.CodeNotFound)
}

// S3: what is released to a session marks it for good; the mark only rises, is what the next
// invocation starts at, and outlives the process.
func TestMark(t *testing.T) {
	s := start(t, false)
	s.notesInProject()
	sess, token := s.session(SessionRequest{Environment: env("project")})
	mark := func(who *server) abi.Classification {
		got, err := who.Invoker(token)
		must(t, err)
		shown, err := who.Session(t.Context(), who.op, DefaultOrg, sess.ID)
		must(t, err)
		if shown.Mark != got.Mark {
			t.Errorf("shown %s, in force %s", shown.Mark, got.Mark)
		}
		_, _, d := who.decide(got, notes)
		if d.Start != got.Mark {
			t.Errorf("marked %s, it starts at %s", got.Mark, d.Start)
		}
		return got.Mark
	}
	for _, step := range []struct{ label, want abi.Classification }{
		{abi.Public, abi.Public}, {abi.Confidential, abi.Confidential}, {abi.Internal, abi.Confidential}, {0, abi.Regulated},
	} {
		must(t, s.Release(t.Context(), sess.ID, step.label))
		if got := mark(s); got != step.want {
			t.Errorf("after %s: %s, want %s", step.label, got, step.want)
		}
		if got := mark(s.again()); got != step.want {
			t.Errorf("after a restart: %s, want %s", got, step.want)
		}
	}
	other, _ := s.session(SessionRequest{Environment: env("project")})
	if other.Mark != abi.Public {
		t.Errorf("another session is marked %s", other.Mark)
	}
	// A damaged mark is no lower one.
	must(t, s.store.Update(t.Context(), func(tx store.Tx) error { return tx.Set(markKey(sess.ID), []byte("secretive")) }))
	if got := mark(s.again()); got != abi.Regulated {
		t.Errorf("a damaged mark counts as %s", got)
	}
	fresh, _ := s.session(SessionRequest{})
	must(t, s.store.Close())
	code(t, s.Release(t.Context(), fresh.ID, abi.Secret), abi.CodeNotReady)
}

// Concurrent releases: the mark is their join.
func TestMarkIsJoined(t *testing.T) {
	s := start(t, false)
	sess, token := s.session(SessionRequest{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := s.Release(t.Context(), sess.ID, abi.Classifications()[i%4]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := s.Invoker(token); err != nil || got.Mark != abi.Secret {
		t.Errorf("%+v %v", got, err)
	}
}

// PF-A14, PF-F18: a role is the principal's, and a revoked token is refused by the next call,
// after a restart, and when its record is put back.
func TestPrincipalTokens(t *testing.T) {
	s := start(t, false)
	issue := func(r TokenRequest) (TokenStatus, session.Principal, string, error) {
		st, text, err := s.IssueToken(t.Context(), s.op, r)
		if err != nil {
			return st, session.Principal{}, "", err
		}
		p, err := s.Principal(text)
		must(t, err)
		return st, p, text, nil
	}
	st, ann, text, err := issue(TokenRequest{Org: DefaultOrg, Principal: "ann", Role: session.OrgAdmin})
	must(t, err)
	if ann != (session.Principal{ID: "ann", Org: DefaultOrg, Role: session.OrgAdmin, Clearance: abi.Internal}) || st.Expires.Sub(noon) != DefaultToken {
		t.Errorf("%+v %+v", ann, st)
	}
	_, _, _, err = issue(TokenRequest{Org: DefaultOrg, Principal: "ann", Role: session.Auditor})
	code(t, err, abi.CodeConflict)
	_, _, _, err = issue(TokenRequest{Org: DefaultOrg, Principal: "bob", Role: "root"})
	code(t, err, abi.CodeInvalidRequest)
	_, _, err = s.IssueToken(t.Context(), ann, TokenRequest{Org: DefaultOrg, Principal: "bob", Role: session.Operator})
	code(t, err, abi.CodeForbidden)
	tokens, err := s.Tokens(t.Context(), s.op, DefaultOrg, all)
	must(t, err)
	for _, tok := range tokens.Items {
		if tok.Principal == operatorPrincipal {
			code(t, s.RevokeToken(t.Context(), ann, DefaultOrg, tok.ID), abi.CodeForbidden)
		}
	}
	must(t, s.RevokeToken(t.Context(), s.op, DefaultOrg, st.ID))
	must(t, s.RevokeToken(t.Context(), s.op, DefaultOrg, st.ID))
	code(t, s.RevokeToken(t.Context(), s.op, DefaultOrg, "none"), abi.CodeNotFound)
	code(t, second(s.Principal(text)), abi.CodeUnauthenticated)
	code(t, second(s.again().Principal(text)), abi.CodeUnauthenticated)
	tokens, err = s.Tokens(t.Context(), s.op, DefaultOrg, all)
	must(t, err)
	data, err := json.Marshal(tokens)
	must(t, err)
	revoked := 0
	for _, tok := range tokens.Items {
		if tok.Revoked {
			revoked++
		}
	}
	if revoked != 1 || len(tokens.Items) != 2 {
		t.Errorf("%s", data)
	}
	_, _, text2, err := issue(TokenRequest{Org: DefaultOrg, Principal: "ann", Role: session.OrgAdmin})
	must(t, err)
	s.now = noon.Add(DefaultToken)
	code(t, second(s.Principal(text2)), abi.CodeUnauthenticated)
}

// S17: whose principal it is and what it is cleared for are fixed with its first token, and nobody
// issues a token that is cleared for more than they are.
func TestPrincipalIsFixed(t *testing.T) {
	s := start(t, false)
	issue := func(by session.Principal, r TokenRequest) (session.Principal, error) {
		r.Org = DefaultOrg
		_, text, err := s.IssueToken(t.Context(), by, r)
		if err != nil {
			return session.Principal{}, err
		}
		return s.Principal(text)
	}
	first := TokenRequest{Principal: "ann", Role: session.Approver, User: "user:ann", Clearance: abi.Secret}
	ann, err := issue(s.op, first)
	must(t, err)
	want := session.Principal{ID: "ann", Org: DefaultOrg, Role: session.Approver, User: "user:ann", Clearance: abi.Secret}
	if ann != want {
		t.Errorf("%+v", ann)
	}
	for _, same := range []TokenRequest{first, {Principal: "ann", Role: session.Approver}} {
		if again, err := issue(s.op, same); err != nil || again != want {
			t.Errorf("%+v %v", again, err)
		}
	}
	for _, other := range []TokenRequest{
		{Principal: "ann", Role: session.Approver, User: "user:bob"},
		{Principal: "ann", Role: session.Approver, Clearance: abi.Regulated},
		{Principal: "ann", Role: session.Approver, Clearance: abi.Public},
	} {
		code(t, second(issue(s.op, other)), abi.CodeConflict)
	}
	for _, user := range []abi.Subject{"agent:bot", "user:", "ann", "biome:x"} {
		code(t, second(issue(s.op, TokenRequest{Principal: "bob", Role: session.Approver, User: user})), abi.CodeInvalidRequest)
	}
	admin, err := issue(s.op, TokenRequest{Principal: "admin", Role: session.OrgAdmin, Clearance: abi.Confidential})
	must(t, err)
	code(t, second(issue(admin, TokenRequest{Principal: "carol", Role: session.Auditor, Clearance: abi.Secret})), abi.CodeForbidden)
	code(t, second(issue(admin, TokenRequest{Principal: "ann", Role: session.Approver})), abi.CodeForbidden)
	if carol, err := issue(admin, TokenRequest{Principal: "carol", Role: session.Auditor, Clearance: abi.Confidential}); err != nil || carol.Cleared() != abi.Confidential {
		t.Errorf("%+v %v", carol, err)
	}
	// Nothing said is the role's.
	for _, r := range []session.Role{session.Operator, session.OrgAdmin, session.Author, session.Approver, session.Auditor} {
		p, err := issue(s.op, TokenRequest{Principal: "p-" + string(r), Role: r})
		must(t, err)
		if p.Clearance != r.DefaultClearance() || (p.Clearance == abi.Regulated) != (r == session.Operator) {
			t.Errorf("%s is cleared for %s", r, p.Clearance)
		}
	}
	if got, there := s.again().principal(DefaultOrg, "ann"); !there || got != want {
		t.Errorf("after a restart %+v", got)
	}
}

// PF-F16: many writers, many names: all are there, and each revision is one write.
func TestConcurrentSecrets(t *testing.T) {
	s := start(t, false)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := fmt.Sprintf("key-%d", i)
			for _, e := range []Expect{Absent, 1} {
				_, err := s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: name, Uses: json.RawMessage(`[]`), Seal: sealed(name)}, e)
				if err != nil {
					t.Error(err)
				}
			}
			_, err := s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: name, Uses: json.RawMessage(`[]`), Seal: sealed("lost")}, 1)
			code(t, err, abi.CodePreconditionFailed)
		})
	}
	wg.Wait()
	for _, who := range []*server{s, s.again()} {
		list, err := who.Secrets(who.op, DefaultOrg)
		must(t, err)
		if len(list) != 50 {
			t.Errorf("%d of 50 are there", len(list))
		}
		for _, info := range list {
			rec, ok := who.SealedSecret(DefaultOrg, info.Name)
			if want := fmt.Sprintf(`{"box":%q,"for":2}`, info.Name); !ok || string(rec.Sealed) != want || info.Version != 2 {
				t.Errorf("%s: %s", info.Name, rec.Sealed)
			}
		}
	}
	must(t, s.RemoveSecret(t.Context(), s.op, DefaultOrg, "key-0", 2))
	if _, ok := s.SealedSecret(DefaultOrg, "key-0"); ok {
		t.Error("removed and still there")
	}
	if _, ok := s.SealedSecret("acme", "key-1"); ok {
		t.Error("it is there for another organisation")
	}
	// A secret that comes back does not come back at an old version.
	info, err := s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: "key-0", Uses: json.RawMessage(`[]`), Seal: sealed("new")}, Absent)
	must(t, err)
	if info.Version != 3 || info.Revision != 4 {
		t.Errorf("%+v", info)
	}
}

// S16, S3: a wildcard host is cleared for nothing but public data; what is not said is public
// on the way out and regulated on the way in.
func TestEndpoint(t *testing.T) {
	s := start(t, false)
	put := func(host string, clearance abi.Classification) (abi.Code, abi.Classification, abi.Classification) {
		e, err := s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "api", Rule: rule(host), Clearance: clearance}, Unstated)
		if err == nil {
			must(t, s.RemoveEndpoint(t.Context(), s.op, DefaultOrg, "api", Expect(e.Revision)))
		}
		return abi.CodeOf(err), e.Clearance, e.Label
	}
	if c, clearance, label := put("api.example.org", 0); c != "" || clearance != abi.Public || label != abi.Regulated {
		t.Errorf("%q %s %s", c, clearance, label)
	}
	if c, clearance, _ := put("*.example.org", abi.Secret); c == "" && clearance != abi.Public {
		t.Errorf("a wildcard host is cleared for %s", clearance)
	}
	for _, bad := range []string{"", "*", "*com", "api.example.org/path", "api example"} {
		if c, _, _ := put(bad, 0); c == "" {
			t.Errorf("%q is a host", bad)
		}
	}
}

// A record that does not decode, or does not fit, stops the start: nobody's rights are guessed.
func TestDamagedRecordsRefuseToOpen(t *testing.T) {
	for name, spoil := range map[string]func(tx store.Tx) error{
		"garbage": func(tx store.Tx) error { return tx.Set(store.Key(keySpace, "grant", DefaultOrg, "x"), []byte("{")) },
		"unknown field": func(tx store.Tx) error {
			return tx.Set(store.Key(keySpace, "org", "acme"), []byte(`{"id":"acme","x":1}`))
		},
		"unknown role": func(tx store.Tx) error {
			return tx.Set(store.Key(keySpace, "principal", DefaultOrg, "x"), []byte(`{"id":"x","org":"default","role":"root"}`))
		},
		"orphan": func(tx store.Tx) error {
			orphan := space.Space{Org: "nowhere", ID: "x", Kind: space.Org, Floor: abi.Public, Clearance: abi.Public}
			return put(tx, orphan)
		},
		"loosening": func(tx store.Tx) error {
			return tx.Set(store.Key(keySpace, "override", DefaultOrg, "environment:mine"), []byte(`{"org":"default","environment":"environment:mine","maxDataClassification":"public","revision":1,"updatedBy":"","updatedAt":"2026-01-01T00:00:00Z"}`))
		},
		"a gap":      func(tx store.Tx) error { return tx.Set(generationKey, []byte("99")) },
		"generation": func(tx store.Tx) error { return tx.Set(generationKey, []byte("many")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, false)
			must(t, s.store.Update(t.Context(), spoil))
			if _, err := Open(t.Context(), s.store, Options{Auditor: s.audit}); err == nil {
				t.Error("it opened")
			}
		})
	}
}

// X35: a change that was answered is in the snapshot, and whoever asked to be told was told.
func TestOnChange(t *testing.T) {
	s := start(t, false)
	var told []uint64
	s.OnChange(func(snap *gate.Snapshot) { told = append(told, snap.Generation) })
	before := s.Snapshot()
	s.upload(DefaultOrg, "notes", 1, notes)
	if len(told) != 1 || told[0] != s.Snapshot().Generation || told[0] != before.Generation+1 {
		t.Errorf("told %v, generation %d after %d", told, s.Snapshot().Generation, before.Generation)
	}
	if s.Snapshot().Orgs.At(SystemOrg) != before.Orgs.At(SystemOrg) {
		t.Error("another organisation's shard was made anew")
	}
}

// Finding the session of a token costs no allocation: it is done with every request.
func TestLookingUpASessionAllocatesNothing(t *testing.T) {
	s := start(t, false)
	_, token := s.session(SessionRequest{})
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.Invoker(token); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

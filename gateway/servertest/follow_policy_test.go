package servertest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// follower makes a call, and does what the answer suggests until the call works. It knows nothing of what is
// wrong: what it does it takes from the members of suggestions, and from what the control plane shows.
type follower struct {
	g        *servertest.Gateway
	s        *servertest.Session
	subject  string
	user     string
	space    string
	files    bool
	ref      string
	input    any
	declared string
	did      []string // kinds of what it did, in order
	waits    string   // what waits for a person's word
	approved bool     // it was given, and the call has been made
}

func (f *follower) open(environment, clearance string) {
	f.g.T.Helper()
	more := map[string]any{"files": f.files}
	for k, v := range map[string]string{"user": f.user, "space": f.space, "clearance": clearance} {
		if v != "" {
			more[k] = v
		}
	}
	f.s = f.g.Open(f.subject, environment, more)
}

// call is refused when the gate or, where it answers with an errno, the boundary refused something.
func (f *follower) call() (worked bool, suggested []problem.Suggestion) {
	f.g.T.Helper()
	if f.approved {
		return true, nil
	}
	var header []string
	if f.declared != "" {
		header = []string{"Ecotone-Classification", f.declared}
	}
	r := f.s.Invoke(f.ref, f.input, header...)
	if r.Status != 200 {
		var p struct {
			AuditID     string
			Suggestions []problem.Suggestion
		}
		r.JSON(&p)
		if r.Status == 202 {
			f.waits = r.Waits()
			p.AuditID = f.waits
		}
		f.same(p.AuditID, p.Suggestions)
		return false, p.Suggestions
	}
	if string(r.Body) == "0   " {
		return true, nil
	}
	// The capability worked around it: the receipt says what it could not do.
	var own struct {
		Ended struct{ Suggestions []problem.Suggestion }
	}
	f.g.Do("GET", f.g.Invoke+"/v1/invocations/"+r.Header.Get("Ecotone-Invocation"), f.s.Token, nil).Want(200).JSON(&own)
	return false, own.Ended.Suggestions
}

// same holds that the row keeps what the caller was told.
func (f *follower) same(id string, told []problem.Suggestion) {
	f.g.T.Helper()
	var kept struct {
		Decision struct{ Suggestions []problem.Suggestion }
		Ended    struct{ Suggestions []problem.Suggestion }
	}
	f.g.Control("GET", "/v1/audit/"+id, nil).Want(200).JSON(&kept)
	if a, b := fmt.Sprint(told), fmt.Sprint(append(kept.Decision.Suggestions, kept.Ended.Suggestions...)); a != b {
		f.g.T.Errorf("the caller is told %s, the row keeps %s", a, b)
	}
}

// run follows the first suggestion of each answer until the call works.
func (f *follower) run(t *testing.T) {
	t.Helper()
	for range gate.NumChecks + 1 {
		worked, suggested := f.call()
		if worked {
			return
		}
		if len(suggested) == 0 {
			t.Fatalf("nothing is suggested, after %v", f.did)
		}
		f.did = append(f.did, suggested[0].Kind)
		f.follow(t, suggested[0])
	}
	t.Fatalf("it does not work, after %v", f.did)
}

func (f *follower) follow(t *testing.T, s problem.Suggestion) {
	t.Helper()
	switch s.Kind {
	case problem.RequestGrant:
		in := map[string]any{}
		if s.Grant != "" {
			in = f.standing(t, s.Subject, s.Grant)
			in["replaces"] = s.Grant
		}
		in["subject"], in["capability"], in["environment"] = s.Subject, s.Capability, s.Environment
		for member, named := range map[string][]string{"globs": s.Globs, "urls": {s.URL}, "spaces": {s.Space}} {
			for _, name := range named {
				if have, _ := in[member].([]any); name != "" {
					in[member] = append(have, name)
				}
			}
		}
		f.g.Control("POST", "/v1/grants", in).Want(201)
	case problem.RequestInstall:
		f.install(s.Biome, s.Environment, s.Call, s.Endpoint, s.Secret)
	case problem.RequestEnable:
		tag := f.g.Control("GET", "/v1/biomes/"+s.Biome, nil).Want(200).Header.Get("ETag")
		f.g.Control("POST", "/v1/biomes/"+s.Biome+"/enable", nil, "If-Match", tag).Want(200)
	case problem.RequestEndpoint:
		name := f.missingEndpoint(t, s.Biome)
		endpoint(f.g, name, s.URL[:strings.LastIndexByte(s.URL, '/')], nil)
		f.install(s.Biome, s.Environment, "", name, "")
	case problem.RequestCeiling:
		f.raise(t, s.Environment, s.Classification)
	case problem.SwitchEnv:
		f.open(strings.TrimPrefix(s.Environment, "environment:"), "")
	case problem.OpenSession:
		clearance := ""
		if s.Classification.Valid() {
			clearance = s.Classification.String()
		}
		f.open(f.environment(), clearance)
	case problem.UseLess:
		f.declared = s.Classification.String()
	case problem.UseSuccessor, problem.UseAnother:
		if f.ref = s.Capability; f.ref == "" {
			t.Fatalf("nothing makes it work: %+v", s)
		}
	case problem.CorrectInput:
		f.input = f.correct(t)
	case problem.Wait:
		time.Sleep(time.Duration(s.Seconds) * time.Second)
	case problem.AwaitApproval:
		f.approve(t)
	default:
		t.Fatalf("%q cannot be followed: %+v", s.Kind, s)
	}
}

// standing is a grant as a request for the same.
func (f *follower) standing(t *testing.T, subject, id string) map[string]any {
	t.Helper()
	var page struct{ Items []map[string]any }
	f.g.Control("GET", "/v1/grants?subject="+subject, nil).Want(200).JSON(&page)
	for _, g := range page.Items {
		if g["id"] == id {
			for _, own := range []string{"id", "org", "replaces", "install", "createdBy", "createdAt", "revoked"} {
				delete(g, own)
			}
			return g
		}
	}
	t.Fatalf("%s has no grant %s", subject, id)
	return nil
}

func (f *follower) environment() string {
	f.g.T.Helper()
	var shown struct{ Environment string }
	f.g.Control("GET", "/v1/sessions/"+f.s.ID, nil).Want(200).JSON(&shown)
	return strings.TrimPrefix(shown.Environment, "environment:")
}

// install admits the newest upload of a biome with all that is admitted already, and one thing more.
func (f *follower) install(biome, environment, call, endpoint, secret string) {
	f.g.T.Helper()
	var was struct{ Environments, Calls, Endpoints, Secrets []string }
	if r := f.g.Control("GET", "/v1/installs/"+biome, nil); r.Status == 200 {
		r.JSON(&was)
	}
	with := func(have []string, one string) []string {
		if one == "" || slices.Contains(have, one) {
			return append([]string{}, have...)
		}
		return append(slices.Clone(have), one)
	}
	environments := with(was.Environments, environment)
	for i, e := range environments {
		environments[i] = strings.TrimPrefix(e, "environment:")
	}
	f.g.Install(biome, environments, map[string]any{
		"calls": with(was.Calls, call), "endpoints": with(was.Endpoints, endpoint), "secrets": with(was.Secrets, secret),
	}).Want(200)
}

// manifest is of the newest upload.
func (f *follower) manifest(biome string) abi.Manifest {
	f.g.T.Helper()
	var uploads struct {
		Items []struct{ Manifest abi.Manifest }
	}
	f.g.Control("GET", "/v1/biomes/"+biome+"/versions", nil).Want(200).JSON(&uploads)
	return uploads.Items[len(uploads.Items)-1].Manifest
}

// missingEndpoint is one that a biome requires and that is not there.
func (f *follower) missingEndpoint(t *testing.T, biome string) string {
	t.Helper()
	for _, need := range f.manifest(biome).Requires.Endpoints {
		if f.g.Control("GET", "/v1/endpoints/"+need.Name, nil).Status == 404 {
			return need.Name
		}
	}
	t.Fatalf("%s requires no endpoint that is not there", biome)
	return ""
}

func (f *follower) raise(t *testing.T, environment string, to abi.Classification) {
	t.Helper()
	var page struct {
		Items []struct {
			Environment string
			Revision    uint64
		}
	}
	f.g.Control("GET", "/v1/orgs/default/overrides", nil).Want(200).JSON(&page)
	for _, o := range page.Items {
		if o.Environment == environment {
			f.g.Control("PUT", "/v1/orgs/default/overrides/"+strings.TrimPrefix(environment, "environment:"), map[string]string{"maxDataClassification": to.String()},
				"If-Match", fmt.Sprintf("%q", fmt.Sprint(o.Revision))).Want(200)
			return
		}
	}
	t.Fatalf("%s has no ceiling of the organisation's", environment)
}

// correct makes the smallest input that the capability's schema takes.
func (f *follower) correct(t *testing.T) any {
	t.Helper()
	biome := strings.SplitN(f.ref, ":", 2)[0]
	for _, p := range f.manifest(biome).Provides {
		if string(p.Ref) != f.ref {
			continue
		}
		var schema struct {
			Required   []string
			Properties map[string]struct{ Type string }
		}
		if err := json.Unmarshal(p.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		for _, name := range schema.Required {
			out[name] = map[string]any{"integer": 1, "string": "", "boolean": true}[schema.Properties[name].Type]
		}
		return out
	}
	t.Fatalf("nobody says what %s takes", f.ref)
	return nil
}

// approve gives the word that is waited for, as an administrator of another name, and waits until the call was made.
func (f *follower) approve(t *testing.T) {
	t.Helper()
	var second struct{ Token string }
	f.g.Control("POST", "/v1/tokens", map[string]any{"principal": "second", "role": "org-admin"}).Want(201).JSON(&second)
	f.g.Do("POST", f.g.Admin+"/v1/approvals/"+f.waits+"/approve", second.Token, map[string]string{"reason": "it was suggested"}).Want(200)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var shown struct {
			Approval struct{ Output json.RawMessage }
		}
		f.g.Do("GET", f.g.Invoke+"/v1/invocations/"+f.waits, f.s.Token, nil).Want(200).JSON(&shown)
		if f.approved = strings.TrimSpace(string(shown.Approval.Output)) == "0"; f.approved {
			return
		}
	}
	t.Fatal("what was approved is not made")
}

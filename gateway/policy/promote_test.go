package policy

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// promoting is a server with a version that ann uploaded, and people who might approve it.
func promoting(t *testing.T) (s *server, ann session.Principal, r InstallRequest) {
	t.Helper()
	s = start(t, false)
	ann = session.Principal{ID: "ann", Org: DefaultOrg, Role: session.Author, User: "user:ann"}
	must(t, s.state.apply(ann))
	must(t, second(s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "api", Rule: rule("api.example.org")}, Unstated)))
	must(t, second(s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: "key", Uses: json.RawMessage(`[]`), Seal: sealed("x")}, Unstated)))
	requires := abi.Requires{Endpoints: []abi.Need{{Name: "api", Why: "w"}}, Secrets: []abi.Need{{Name: "key", Why: "w"}}}
	must(t, second2(s.PutBiome(t.Context(), ann, BiomeRequest{Org: DefaultOrg, Digest: sum(1), Manifest: manifest("notes", []abi.CapabilityRef{notes}, requires)})))
	must(t, second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(2), Manifest: manifest("notes", []abi.CapabilityRef{notes}, requires)})))
	return s, ann, InstallRequest{
		Org: DefaultOrg, Biome: "notes", Digest: sum(1), Environments: []abi.EnvironmentRef{env("project")}, Endpoints: []string{"api"}, Secrets: []string{"key"},
	}
}

// S17, X62: each thing a promotion is bound to, changed between the request and the word, voids it, and so
// do who may not decide and what is too late: nothing is installed.
func TestPromotionIsBound(t *testing.T) {
	cheri := session.Principal{ID: "cheri", Org: DefaultOrg, Role: session.OrgAdmin, User: "user:cheri"}
	for name, c := range map[string]struct {
		code    abi.Code
		changed func(*server)
		by      func(*session.Principal)
	}{
		"nothing": {},
		"endpoint": {code: abi.CodeApprovalStale, changed: func(s *server) {
			must(t, second(s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "api", Rule: rule("evil.example.org")}, 1)))
		}},
		"endpoint gone": {code: abi.CodeApprovalStale, changed: func(s *server) { must(t, s.RemoveEndpoint(t.Context(), s.op, DefaultOrg, "api", 1)) }},
		"secret": {code: abi.CodeApprovalStale, changed: func(s *server) {
			must(t, second(s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: "key", Uses: json.RawMessage(`[]`), Seal: sealed("y")}, 1)))
		}},
		"install": {code: abi.CodeApprovalStale, changed: func(s *server) {
			must(t, second(s.Install(t.Context(), s.op, InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(2), Environments: []abi.EnvironmentRef{env("org")}}, Unstated)))
		}},
		"archived": {code: abi.CodeApprovalStale, changed: func(s *server) { must(t, second(s.Archive(t.Context(), s.op, DefaultOrg, "notes", 2))) }},
		"expired":  {code: abi.CodeApprovalStale, changed: func(s *server) { s.now = s.now.Add(approval.DefaultLife) }},
		"another upload": {changed: func(s *server) {
			must(t, second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(3), Manifest: manifest("notes", []abi.CapabilityRef{notes}, abi.Requires{})})))
		}},
		"by its requester":             {code: abi.CodeForbidden, by: func(p *session.Principal) { p.ID = "bea" }},
		"by its uploader":              {code: abi.CodeForbidden, by: func(p *session.Principal) { p.ID = "ann" }},
		"by the uploader's other name": {code: abi.CodeForbidden, by: func(p *session.Principal) { p.User = "user:ann" }},
		"by the requester's other":     {code: abi.CodeForbidden, by: func(p *session.Principal) { p.User = "user:bea" }},
		"by an author":                 {code: abi.CodeForbidden, by: func(p *session.Principal) { p.Role = session.Author }},
		"by a stranger":                {code: abi.CodeForbidden, by: func(p *session.Principal) { p.Org = "acme" }},
		"without a grant to approve":   {code: abi.CodeNotFound, by: func(p *session.Principal) { p.Role = session.Approver }},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, r := promoting(t)
			bea := session.Principal{ID: "bea", Org: DefaultOrg, Role: session.OrgAdmin, User: "user:bea"}
			a, err := s.Promote(t.Context(), bea, r)
			must(t, err)
			if a.Expires.Sub(s.now) != approval.DefaultLife || a.Kind != approval.Promotion || a.Requester != bea.Name() {
				t.Errorf("%+v", a)
			}
			if _, err := s.InstallOf(s.op, DefaultOrg, "notes", ""); abi.CodeOf(err) != abi.CodeNotFound {
				t.Fatalf("asked for is installed: %v", err)
			}
			if c.changed != nil {
				c.changed(s)
			}
			who := cheri
			if c.by != nil {
				c.by(&who)
			}
			before := s.Snapshot()
			out, err := s.DecideApproval(t.Context(), who, DefaultOrg, a.ID, approval.Approve, "")
			if abi.CodeOf(err) != c.code {
				t.Fatalf("%v", err)
			}
			if c.code != "" {
				if s.Snapshot() != before {
					t.Error("something changed")
				}
				return
			}
			i, err := s.InstallOf(s.op, DefaultOrg, "notes", "")
			must(t, err)
			if i.Digest != sum(1) || i.Approval != a.ID || i.CreatedBy != cheri.Name() || i.Permissions == "" || !slices.Equal(i.Endpoints, r.Endpoints) || out.Decision.By != cheri.Name() {
				t.Errorf("%+v", i)
			}
			// It is done, with a restart as without, and done once.
			for _, service := range []*server{s, s.again()} {
				now, err := service.Approval(t.Context(), s.op, DefaultOrg, a.ID)
				must(t, err)
				if now.State(s.now) != approval.Done {
					t.Errorf("it is %s", now.State(s.now))
				}
				must(t, second(service.DecideApproval(t.Context(), cheri, DefaultOrg, a.ID, approval.Approve, "")))
				code(t, second(service.DecideApproval(t.Context(), cheri, DefaultOrg, a.ID, approval.Reject, "")), abi.CodeConflict)
				if again, _ := service.InstallOf(s.op, DefaultOrg, "notes", ""); again.ID != i.ID {
					t.Error("it was installed twice")
				}
			}
		})
	}
}

// X62: a version under review is shown so until somebody decided, or nobody did in time; what could not
// be installed cannot be asked for.
func TestPromotionStages(t *testing.T) {
	s, ann, r := promoting(t)
	stage := func() [3]grant.Stage {
		b, err := s.Biome(s.op, DefaultOrg, "notes")
		must(t, err)
		out := [3]grant.Stage{b.Stage}
		versions, err := s.Uploads(s.op, DefaultOrg, "notes")
		must(t, err)
		for _, v := range versions {
			out[map[string]int{sum(1): 1, sum(2): 2}[v.Digest]] = v.Stage
		}
		return out
	}
	want := func(what string, stages ...grant.Stage) {
		t.Helper()
		if got := stage(); got != [3]grant.Stage(stages) {
			t.Errorf("%s: %v", what, got)
		}
	}
	const tried, review, installed, over = grant.SandboxInstalled, grant.ReviewRequired, grant.OrgInstalled, grant.Archived
	want("uploaded", tried, tried, tried)
	for name, change := range map[string]func(*InstallRequest){
		"digest": func(r *InstallRequest) { r.Digest = sum(9) }, "environment": func(r *InstallRequest) { r.Environments = nil },
		"secret": func(r *InstallRequest) { r.Secrets = []string{"other"} }, "permissions": func(r *InstallRequest) { r.Permissions = sum(1) },
		"biome": func(r *InstallRequest) { r.Biome = "nothing" },
	} {
		q := r
		change(&q)
		if _, err := s.Promote(t.Context(), ann, q); err == nil {
			t.Errorf("%s: it can be asked for", name)
		}
	}
	want("refused", tried, tried, tried)
	a, err := s.Promote(t.Context(), ann, r)
	must(t, err)
	want("asked", review, review, tried)
	must(t, second(s.DecideApproval(t.Context(), s.op, DefaultOrg, a.ID, approval.Reject, "no")))
	want("rejected", tried, tried, tried)
	must(t, second(s.Promote(t.Context(), ann, r)))
	s.now = s.now.Add(approval.DefaultLife + time.Second)
	want("too late", tried, tried, tried)
	a, err = s.Promote(t.Context(), ann, r)
	must(t, err)
	must(t, second(s.DecideApproval(t.Context(), s.op, DefaultOrg, a.ID, approval.Approve, "")))
	want("approved", installed, installed, tried)
	r.Digest = sum(2)
	_, err = s.Promote(t.Context(), ann, r)
	must(t, err)
	want("the next one asked for", installed, installed, review)
	must(t, second(s.Archive(t.Context(), s.op, DefaultOrg, "notes", 2)))
	want("archived", over, installed, over)
}

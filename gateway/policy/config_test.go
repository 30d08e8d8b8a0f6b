package policy

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// What an install grant tells a biome is what its authority has; another install ends that authority, and
// a rollback brings back what was said before.
func TestConfigFlowsToTheAuthority(t *testing.T) {
	s := start(t, false)
	s.upload(DefaultOrg, "notes", 1, notes)
	s.grant(ada, notes, "project")
	sess, _ := s.session(SessionRequest{Environment: env("project")})
	told := func() (grant.Config, func() *abi.Error) {
		t.Helper()
		snap, f, d := s.decide(sess, notes)
		a := s.Authorize(snap, f, &d, "inv", time.Time{}, nil)
		if a == nil {
			t.Fatalf("%s", d.Code)
		}
		return a.Spec().Config, a.Current
	}
	install := func(digest int, c grant.Config, e Expect) {
		t.Helper()
		i, err := s.Install(t.Context(), s.op, InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(digest), Environments: []abi.EnvironmentRef{env("project")}, Config: c}, e)
		must(t, err)
		if !maps.Equal(i.Config, c) {
			t.Errorf("the answer says %v", i.Config)
		}
	}
	first := grant.Config{"greeting": "hello", "a/b~c": ""}
	install(1, first, Unstated)
	got, stands := told()
	if !maps.Equal(got, first) {
		t.Errorf("the authority has %v", got)
	}
	install(1, nil, 1)
	if err := stands(); err == nil || err.Code != abi.CodeGrantRevoked {
		t.Errorf("what was told otherwise since still stands: %v", err)
	}
	if got, _ := told(); len(got) != 0 {
		t.Errorf("an install without configuration tells %v", got)
	}
	install(1, first, 2)
	s.upload(DefaultOrg, "notes", 2, notes)
	install(2, grant.Config{"greeting": "other"}, 3)
	must(t, second(s.Rollback(t.Context(), s.op, DefaultOrg, "notes", 4)))
	if got, _ := told(); !maps.Equal(got, first) {
		t.Errorf("rolled back, the authority has %v", got)
	}
	again := s.again()
	i, err := again.InstallOf(s.op, DefaultOrg, "notes", "")
	must(t, err)
	if !maps.Equal(i.Config, first) {
		t.Errorf("after a restart it is %v", i.Config)
	}
	r, err := s.Permissions(s.op, DefaultOrg, "notes", sum(2))
	must(t, err)
	if strings.Join(r.Config, " ") != "a/b~c greeting" {
		t.Errorf("the permission report names %v", r.Config)
	}
}

// PF-D1: each bound of configuration, at it and over it.
func TestConfigIsBounded(t *testing.T) {
	many := func(n int) grant.Config {
		c := grant.Config{}
		for i := range n {
			c[strconv.Itoa(i)] = "v"
		}
		return c
	}
	for name, c := range map[string]struct {
		config grant.Config
		at     string // "" is taken
	}{
		"most":          {config: many(grant.MaxConfig)},
		"too many":      {config: many(grant.MaxConfig + 1), at: "/config"},
		"longest name":  {config: grant.Config{strings.Repeat("n", grant.MaxConfigName): ""}},
		"long name":     {config: grant.Config{strings.Repeat("n", grant.MaxConfigName+1): ""}, at: "/config"},
		"no name":       {config: grant.Config{"": "v"}, at: "/config"},
		"hidden name":   {config: grant.Config{"a\u202eb": "v"}, at: "/config"},
		"zero in name":  {config: grant.Config{"a\x00b": "v"}, at: "/config"},
		"longest value": {config: grant.Config{"a": strings.Repeat("\x00", grant.MaxConfigValue)}},
		"long value":    {config: grant.Config{"a/b": strings.Repeat("v", grant.MaxConfigValue+1)}, at: "/config/a~1b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, false)
			s.upload(DefaultOrg, "notes", 1, notes)
			_, err := s.Install(t.Context(), s.op, InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(1), Environments: []abi.EnvironmentRef{env("project")}, Config: c.config}, Unstated)
			if c.at == "" {
				must(t, err)
				return
			}
			code(t, err, abi.CodeInvalidRequest)
			if at := abi.AsError(err).Pointer; at != c.at {
				t.Errorf("it points at %q", at)
			}
		})
	}
}

// S17: what a version would be told is fixed with the request to admit it.
func TestPromotionCarriesConfig(t *testing.T) {
	s, _, r := promoting(t)
	bea := session.Principal{ID: "bea", Org: DefaultOrg, Role: session.OrgAdmin, User: "user:bea"}
	cheri := session.Principal{ID: "cheri", Org: DefaultOrg, Role: session.OrgAdmin, User: "user:cheri"}
	r.Config = grant.Config{"mode": "strict"}
	asked, err := s.Promote(t.Context(), bea, r)
	must(t, err)
	var bound promotion
	must(t, json.Unmarshal(asked.Binding, &bound))
	if bound.Install.Config["mode"] != "strict" {
		t.Errorf("who approves sees %s", asked.Binding)
	}
	r.Config["mode"] = "changed behind the request's back"
	must(t, second(s.DecideApproval(t.Context(), cheri, DefaultOrg, asked.ID, approval.Approve, "")))
	i, err := s.InstallOf(s.op, DefaultOrg, "notes", "")
	must(t, err)
	if i.Approval != asked.ID || i.Config["mode"] != "strict" {
		t.Errorf("installed with %v by %q", i.Config, i.Approval)
	}
}

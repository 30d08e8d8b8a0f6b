package usage

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// nobody's organisation has the biomes that are asked for, and endpoints that admit example.com in two ways.
type known struct{ endpoints []*egress.Endpoint }

func (k known) Endpoints(string, string) []*egress.Endpoint { return k.endpoints }
func (known) Own(biome string) bool                         { return biome != "system" }

func ran(id, parent, biome string, ref abi.CapabilityRef, lines ...audit.Line) audit.Row {
	return audit.Row{
		ID: id, Kind: audit.RowInvocation, Ended: &audit.Ended{Lines: lines},
		Decision: &audit.Decided{
			Envelope: audit.Envelope{Subject: audit.SubjectRef{Kind: "agent", ID: "bot"}, User: &audit.SubjectRef{Kind: "user", ID: "ada"}, Capability: ref, Parent: parent},
			Verdict:  audit.VerdictAllow, Biome: biome, Digest: "d",
		},
	}
}

func line(function, target string) audit.Line { return audit.Line{Function: function, Target: target} }

// What was used is named as it was, by its directory where there is much of it, and not at all where a receipt cannot
// say; what was refused was not used.
func TestFind(t *testing.T) {
	endpoint := func(name, path string) *egress.Endpoint {
		e, err := egress.Compile(name, egress.Rule{Scheme: "https", Host: "example.com", Methods: []string{"GET"}, Path: path}, abi.Public, abi.Public, false)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	k := known{[]*egress.Endpoint{endpoint("narrow", "/a"), endpoint("wide", "/**")}}
	var many []audit.Line
	for i := range maxSiblings + 1 {
		many = append(many, line("file_read", fmt.Sprintf("dir/%d", i)), line("kv_get", fmt.Sprint(i)))
	}
	refused := line("kv_put", "refused")
	refused.Code = abi.CodeClassificationFlow
	fetched := line("http_fetch", "https://example.com/b")
	fetched.Secret = "token"
	for name, c := range map[string]struct {
		lines   []audit.Line
		globs   []string
		install Install
	}{
		"nothing":           {nil, nil, Install{}},
		"one of each":       {[]audit.Line{line("kv_put", "a"), line("file_stat", "b/c"), line("kv_get", "a"), line("file_move", "x -> y"), line("file_copy", "v → w")}, []string{"a", "b/c", "v", "w", "x", "y"}, Install{}},
		"many":              {many, []string{"*", "dir/*"}, Install{}},
		"refused":           {[]audit.Line{refused}, nil, Install{}},
		"listed":            {[]audit.Line{line("file_list", "dir"), line("file_read", "dir/a"), line("kv_list", "p")}, []string{"dir/*", "p*", "p*/**"}, Install{}},
		"the root":          {[]audit.Line{line("file_list", ".")}, []string{"*"}, Install{}},
		"a glob":            {[]audit.Line{line("file_glob", "**/*.md"), line("file_read", "a/b.md")}, []string{"**/*.md"}, Install{}},
		"searched":          {[]audit.Line{line("file_grep", "reports/**"), line("file_read", "reports/a"), line("kv_put", "b")}, []string{"b", "reports/**"}, Install{}},
		"who knows what":    {[]audit.Line{line("kv_list", ""), line("kv_put", "a")}, nil, Install{}},
		"an odd name":       {[]audit.Line{line("kv_put", "a[b")}, nil, Install{}},
		"one endpoint":      {[]audit.Line{line("http_fetch", "https://example.com/a"), line("http_fetch", "https://example.com/a")}, nil, Install{Endpoints: []string{"narrow"}}},
		"the wider is used": {[]audit.Line{fetched, line("http_fetch", "https://example.com/a")}, nil, Install{Endpoints: []string{"wide"}, Secrets: []string{"token"}}},
		"secrets and calls": {[]audit.Line{line("secret_hmac", "signer"), line("capability_invoke", "system:a.do@1")}, nil, Install{Secrets: []string{"signer"}, Calls: []abi.CapabilityRef{"system:a.do@1"}}},
	} {
		got := Find([]audit.Row{ran("1", "", "b", "b:a.do@1", c.lines...)}, "b", "d", "environment:project", k)
		c.install.Biome, c.install.Digest, c.install.Environments = "b", "d", []abi.EnvironmentRef{"environment:project"}
		want := []Grant{
			{Subject: "agent:bot", Capability: "b:a.do@1", Environment: "environment:project", Globs: c.globs},
			{Subject: "user:ada", Capability: "b:a.do@1", Environment: "environment:project", Globs: c.globs},
		}
		if diff := cmp.Diff(want, got.Grants); diff != "" {
			t.Errorf("%s: grants\n%s", name, diff)
		}
		if diff := cmp.Diff([]Install{c.install}, got.Installs); diff != "" {
			t.Errorf("%s: installs\n%s", name, diff)
		}
	}
}

// A parent's grant names what its children use, or they could not; what the system's biomes use is installed nowhere here; and
// another version's rows say nothing.
func TestFindChildren(t *testing.T) {
	other := ran("9", "", "b", "b:z.do@1", line("kv_put", "z"))
	other.Decision.Digest = "another"
	rows := []audit.Row{ // newest first, as the audit has them
		other,
		ran("3", "2", "system", "system:a.do@1", line("kv_put", "deep")),
		ran("2", "1", "c", "c:a.do@1", line("kv_get", "mine"), line("capability_invoke", "system:a.do@1")),
		ran("1", "", "b", "b:a.do@1", line("capability_invoke", "c:a.do@1")),
	}
	got := Find(rows, "b", "d", "environment:project", known{})
	var globs []string
	for _, g := range got.Grants {
		if g.Subject == "user:ada" {
			globs = append(globs, fmt.Sprint(g.Capability, g.Globs))
		}
	}
	if diff := cmp.Diff([]string{"b:a.do@1[deep mine]", "c:a.do@1[deep mine]", "system:a.do@1[deep]"}, globs); diff != "" {
		t.Error(diff)
	}
	if len(got.Installs) != 2 || got.Invocations != 3 || got.Incomplete {
		t.Errorf("%+v", got)
	}
}

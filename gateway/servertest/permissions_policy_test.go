package servertest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// permissionsOf reads the permission document of a version; "" is the newest.
func permissionsOf(g *servertest.Gateway, biome, digest string) (out policy.PermissionsReport) {
	g.T.Helper()
	query := ""
	if digest != "" {
		query = "?digest=" + digest
	}
	g.Control("GET", "/v1/biomes/"+biome+"/permissions"+query, nil).Want(200).JSON(&out)
	return out
}

// X63, PF-I7: a version's permission document is made of its manifest and its imports, and anybody can
// make its digest; what is new in it is named before it is installed; an install that was decided over
// another document is not made; and what runs is what was admitted, whatever was uploaded since.
func TestPermissionDocument(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	endpoint(g, "api", "http://127.0.0.1:1", map[string]any{"loopback": false, "rule": map[string]any{"scheme": "https", "host": "a.example", "methods": []string{"GET"}, "path": "/"}})
	g.Upload(script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	read := action{ref: "perm:note.read@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}}
	send := action{
		ref: "out:mail.send@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"https://a.example/"}`, "")},
		shape: func(d *abi.Descriptor) {
			d.RiskTier, d.SideEffects, d.RequiresApproval = abi.RiskHigh, "sends <mail> & more", true
		},
	}

	g.Upload(script("perm", nil, read)).Want(201)
	first := permissionsOf(g, "perm", "")
	if diff := cmp.Diff(policy.Permissions{
		Biome: "perm", Data: map[string][]string{"keys": {"kv_get"}}, Calls: []abi.CapabilityRef{}, Endpoints: []string{}, Secrets: []string{},
		Domains: map[string][]policy.PermissionsCapability{"perm": {{
			Ref: "perm:note.read@1", Reach: abi.ReachOwner, RiskTier: abi.RiskLow, SideEffects: "none", OutputClassification: abi.Public,
		}}},
	}, first.Document); diff != "" {
		t.Error(diff)
	}
	if len(first.Diff.Added) != 2 || first.Diff.Digest != "" {
		t.Errorf("before the first install: %+v", first.Diff)
	}
	g.Install("perm", []string{"project"}, map[string]any{"permissions": first.Permissions}).Want(200)
	g.Grant("user:alice", "perm:note.read@1", "project")
	var held struct{ Digest, Permissions string }
	g.Control("GET", "/v1/installs/perm", nil).Want(200).JSON(&held)
	if held.Digest != first.Digest || held.Permissions != first.Permissions {
		t.Errorf("the install grant says %+v", held)
	}

	// The next version asks for more, and takes something away.
	g.Upload(script("perm", func(m *abi.Manifest) {
		m.Requires.Endpoints, m.Requires.Capabilities = []abi.Need{{Name: "api", Why: "test"}}, []abi.CapabilityRef{"callee:a.do@1"}
	}, send, action{ref: "perm:note.read@1", reach: abi.ReachIntegration})).Want(201)
	g.Grant("user:alice", "out:mail.send@1", "project")
	second := permissionsOf(g, "perm", "")
	if diff := cmp.Diff(policy.PermissionsDiff{
		Digest: first.Digest, Permissions: first.Permissions,
		Added:   []policy.PermissionsLine{{Kind: "call", Name: "callee:a.do@1"}, {Kind: "capability", Name: "out:mail.send@1"}, {Kind: "endpoint", Name: "api"}, {Kind: "network", Name: "http_fetch"}},
		Removed: []policy.PermissionsLine{{Kind: "keys", Name: "kv_get"}},
		Changed: []policy.PermissionsChange{{PermissionsLine: policy.PermissionsLine{Kind: "capability", Name: "perm:note.read@1"}, Field: "reach", From: "owner", To: "integration"}},
	}, second.Diff); diff != "" {
		t.Error(diff)
	}

	// The digest can be made by anybody: the document without white space, in order of names (RFC 8785).
	// Go writes maps so; nothing in this one needs an escape of JSON's.
	var doc struct{ Document map[string]any }
	raw := g.Control("GET", "/v1/biomes/perm/permissions", nil).Want(200)
	raw.JSON(&doc)
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc.Document); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(strings.TrimSuffix(b.String(), "\n")))
	if got := hex.EncodeToString(sum[:]); got != second.Permissions || second.Permissions == first.Permissions {
		t.Errorf("the digest is %s, the server says %s", got, second.Permissions)
	}

	// Uploaded is not installed: the new ref is denied, the old version serves the old one.
	s := g.Open("user:alice", "project", nil)
	s.Invoke("out:mail.send@1", none).Refused(abi.CodeMissingGrant)
	if got := row(g, s.Invoke("perm:note.read@1", none)).Decision.Digest; got != first.Digest {
		t.Errorf("%s runs", got)
	}
	// Decided over another document: nothing is installed.
	r := g.Install("perm", []string{"project"}, map[string]any{"permissions": first.Permissions}).Refused(abi.CodePreconditionFailed)
	var p struct{ Pointer string }
	if r.JSON(&p); p.Pointer != "/permissions" {
		t.Errorf("it points at %q", p.Pointer)
	}
	g.Install("perm", []string{"project"}, map[string]any{"permissions": "x"}).Refused(abi.CodePreconditionFailed)
	s.Invoke("out:mail.send@1", none).Refused(abi.CodeMissingGrant)
	g.Install("perm", []string{"project"}, map[string]any{"permissions": second.Permissions}).Want(200)
	if d := permissionsOf(g, "perm", "").Diff; len(d.Added)+len(d.Removed)+len(d.Changed) != 0 || d.Permissions != second.Permissions {
		t.Errorf("what is installed differs from itself: %+v", d)
	}
	// The way back is a difference, too.
	if d := permissionsOf(g, "perm", first.Digest).Diff; !slices.Equal(d.Added, []policy.PermissionsLine{{Kind: "keys", Name: "kv_get"}}) || len(d.Removed) != 4 {
		t.Errorf("the way back: %+v", d)
	}
	g.Control("GET", "/v1/biomes/perm/permissions?digest=0", nil).Refused(abi.CodeNotFound)
	g.Control("GET", "/v1/biomes/nothing/permissions", nil).Refused(abi.CodeNotFound)
	g.Control("GET", "/v1/biomes/perm/permissions?org=acme", nil).Refused(abi.CodeNotFound)
}

// What was admitted is still what it was after a restart, with the document it was admitted over.
func TestPermissionsAcrossARestart(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "perm", script("perm", nil, action{ref: "perm:a.do@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}}), []string{"project"}, nil)
	before := permissionsOf(g, "perm", "")
	held := g.Control("GET", "/v1/installs/perm", nil).Want(200).Body
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	if diff := cmp.Diff(before, permissionsOf(g, "perm", "")); diff != "" {
		t.Error(diff)
	}
	if got := g.Control("GET", "/v1/installs/perm", nil).Want(200).Body; string(got) != string(held) || !strings.Contains(string(got), before.Permissions) {
		t.Errorf("before %s, after %s", held, got)
	}
}

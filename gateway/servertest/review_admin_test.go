package servertest_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// issue makes a principal of an organisation and returns its token.
func issue(g *servertest.Gateway, org, name, role string) string {
	g.T.Helper()
	var out struct {
		Token string `json:"token"`
	}
	g.Control("POST", "/v1/tokens?org="+org, map[string]string{"principal": name, "role": role}).Want(201).JSON(&out)
	return out.Token
}

// A session that an environment grant opened lasts no longer than the grant does.
func TestASessionDoesNotOutliveItsEnvironmentGrant(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	author := issue(g, "default", "ann", "author")
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	g.Control("POST", "/v1/environment-grants", map[string]any{
		"principal": "ann", "subject": "agent:bot", "environment": "environment:sandbox", "expires": ends,
	}).Want(201)
	var listed struct {
		Items []struct{ Principal, Subject string } `json:"items"`
	}
	g.Control("GET", "/v1/environment-grants", nil).Want(200).JSON(&listed)
	if len(listed.Items) != 1 || listed.Items[0].Principal != "ann" || listed.Items[0].Subject != "agent:bot" {
		t.Errorf("listed are %+v", listed.Items)
	}
	// Of an agent and its user, the grant that ends first.
	g.Control("POST", "/v1/environment-grants", map[string]any{
		"principal": "ann", "subject": "user:alice", "environment": "environment:sandbox", "expires": ends.Add(time.Hour),
	}).Want(201)
	in := map[string]any{"subject": "agent:bot", "user": "user:alice", "environment": "environment:sandbox"}
	var out struct {
		Of struct {
			Expires time.Time `json:"expires"`
		} `json:"of"`
	}
	g.Do("POST", g.Admin+"/v1/sessions", author, in).Want(201).JSON(&out)
	if out.Of.Expires.After(ends) {
		t.Errorf("the grant ends at %s and the session at %s", ends, out.Of.Expires)
	}
	in["expires"] = ends.Add(time.Hour)
	g.Do("POST", g.Admin+"/v1/sessions", author, in).Refused(abi.CodeInvalidRequest)
}

// S15, PF-F6: whatever is wrong with the request that brings a secret, its value is in no answer,
// no row and no log.
func TestARefusedSecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	const value = "canary-0123456789-canary"
	use := `[{"header":"X-Key","host":"api.example.com","path":"/**"}]`
	for _, body := range []string{
		`{"value":"` + value + `","value":"` + value + `","uses":` + use + `}`,
		`{"value":["` + value + `"],"uses":` + use + `}`,
		`{"value":{"` + value + `":1},"uses":` + use + `}`,
		`{"value":"` + value + `","uses":[{"` + value + `":1}]}`,
		`{"value":"` + value + `","uses":"` + value + `"}`,
		`{"value":"` + value + `","uses":` + use + `}` + value,
		`{"` + value + `":1}`,
		`{"value":"` + value + `\ud800","uses":` + use + `}`,
		`{"value":"` + value + `" "uses"}`,
		`{"value":"canary-`,
	} {
		res := g.Control("PUT", "/v1/secrets/key", []byte(body), "If-None-Match", "*")
		if res.Status < 400 || bytes.Contains(res.Body, []byte("canary")) {
			t.Errorf("%s is answered with %d %s", body, res.Status, res.Body)
		}
	}
	for _, org := range []string{"default", "system"} {
		if raw := g.Control("GET", "/v1/audit?limit=500&org="+org, nil).Want(200).Body; bytes.Contains(raw, []byte("canary")) {
			t.Errorf("the audit of %s quotes the value", org)
		}
	}
	g.Stop()
	if bytes.Contains(g.Log.Bytes(), []byte("canary")) {
		t.Error("the log quotes the value")
	}
}

// PF-A13: an administrator of one organisation does nothing in another, however it is named: in
// the query, the body or the path.
func TestAnAdministratorStaysInItsOrganisation(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "other"}).Want(201)
	admin, auditor := issue(g, "default", "adm", "org-admin"), issue(g, "default", "aud", "auditor")
	do := func(method, path, token string, body any) servertest.Response {
		return g.Do(method, g.Admin+path, token, body, "If-None-Match", "*")
	}
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/spaces?org=other", map[string]any{"id": "s", "kind": "project"}},
		{"POST", "/v1/spaces", map[string]any{"org": "other", "id": "s", "kind": "project"}},
		{"POST", "/v1/spaces?org=default", map[string]any{"org": "other", "id": "s", "kind": "project"}},
		{"POST", "/v1/spaces?org=default&org=other", map[string]any{"id": "s", "kind": "project"}},
		{"POST", "/v1/sessions", map[string]any{"org": "other", "subject": "user:x", "environment": "environment:sandbox"}},
		{"POST", "/v1/tokens", map[string]any{"org": "other", "principal": "x", "role": "org-admin"}},
		{"POST", "/v1/tokens", map[string]any{"principal": "x", "role": "operator"}},
		{"POST", "/v1/tokens", map[string]any{"principal": "operator", "role": "operator"}},
		{"POST", "/v1/tokens", map[string]any{"principal": "operator", "role": "org-admin"}},
		{"PUT", "/v1/orgs/other/overrides/sandbox", map[string]any{"maxDataClassification": "public"}},
		{"PUT", "/v1/orgs/other/overrides/sandbox?org=default", map[string]any{"maxDataClassification": "public"}},
		{"PUT", "/v1/environments/sandbox", map[string]any{"limits": map[string]int{"wall": 10}}},
		{"PUT", "/v1/secrets/key?org=other", map[string]any{"value": "0123456789abcdef0123", "uses": []any{}}},
		{"GET", "/v1/audit?org=other", nil},
		{"GET", "/v1/audit?org=system", nil},
		{"GET", "/v1/audit/head?org=other", nil},
		{"GET", "/v1/orgs/other/overrides", nil},
	} {
		if res := do(c.method, c.path, admin, c.body); res.Status/100 != 4 {
			t.Errorf("%s %s %v as an administrator of another organisation: %d %s", c.method, c.path, c.body, res.Status, res.Body)
		}
		if c.body == nil {
			continue
		}
		if res := do(c.method, c.path, auditor, c.body); res.Status != 403 {
			t.Errorf("%s %s as an auditor: %d %s", c.method, c.path, res.Status, res.Body)
		}
	}
	var spaces struct {
		Items []any `json:"items"`
	}
	g.Control("GET", "/v1/spaces?org=other", nil).Want(200).JSON(&spaces)
	if len(spaces.Items) != 1 {
		t.Errorf("the other organisation has %d spaces", len(spaces.Items))
	}
}

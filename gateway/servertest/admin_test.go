package servertest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// operation is one of the control plane's, as its document has it.
type operation struct {
	Method, Path string
	OperationID  string
	Summary      string
	Parameters   []struct {
		Name, In string
		Required bool
		Schema   map[string]any
	}
	RequestBody *struct {
		Required bool
		Content  map[string]json.RawMessage
	}
	Responses map[string]map[string]json.RawMessage
	Security  *[]map[string][]string
}

func (o operation) String() string { return o.Method + " " + o.Path }

func (o operation) takes(media string) bool {
	if o.RequestBody == nil {
		return false
	}
	_, ok := o.RequestBody.Content[media]
	return ok
}

// example fills a path's parameters with something plain.
func (o operation) example() string {
	return strings.NewReplacer("{org}", "default", "{slug}", "project", "{name}", "some-name", "{biome}", "some-biome", "{ref}", "some:thing.do@1", "{id}", "01ARZ3NDEKTSV4RRFFQ69G5FAV").Replace(o.Path)
}

// operations reads the control plane's openapi.json.
func operations(g *servertest.Gateway) []operation {
	g.T.Helper()
	out := operationsAt(g, g.Admin)
	if len(out) < 30 {
		g.T.Fatalf("the document has %d operations", len(out))
	}
	return out
}

// operationsAt reads a listener's openapi.json.
func operationsAt(g *servertest.Gateway, base string) []operation {
	g.T.Helper()
	var doc struct {
		Paths map[string]map[string]operation
	}
	g.Do("GET", base+"/openapi.json", "", nil).Want(200).JSON(&doc)
	var out []operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			o := doc.Paths[path][method]
			o.Method, o.Path = strings.ToUpper(method), path
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		g.T.Fatal("the document has no operation")
	}
	return out
}

// The document is the route table, and well-formed: OpenAPI 3.1 with every operation named
// once, every path parameter declared, every reference there, every answer described.
func TestDocument(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	all := operations(g)
	source, err := os.ReadFile("../admin/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	var inSource, inDocument []string
	for _, m := range regexp.MustCompile(`method: http\.Method(\w+), path: "([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		inSource = append(inSource, strings.ToUpper(m[1])+" "+m[2])
	}
	ids := map[string]bool{}
	for _, o := range all {
		inDocument = append(inDocument, o.String())
		if o.OperationID == "" || ids[o.OperationID] || o.Summary == "" {
			t.Errorf("%s is named %q: %q", o, o.OperationID, o.Summary)
		}
		ids[o.OperationID] = true
		declared := map[string]bool{}
		for _, p := range o.Parameters {
			key := p.In + " " + p.Name
			if declared[key] || p.Schema == nil || (p.In == "path") != p.Required || (p.In != "path" && p.In != "query" && p.In != "header") {
				t.Errorf("%s: parameter %+v", o, p)
			}
			declared[key] = true
		}
		for _, part := range strings.Split(o.Path, "/") {
			if name, isParam := strings.CutPrefix(part, "{"); isParam && !declared["path "+strings.TrimSuffix(name, "}")] {
				t.Errorf("%s does not declare %s", o, part)
			}
		}
		if o.Responses["default"] == nil || len(o.Responses) < 2 {
			t.Errorf("%s answers %v", o, o.Responses)
		}
		for status, r := range o.Responses {
			if r["description"] == nil && r["$ref"] == nil {
				t.Errorf("%s: %s is not described", o, status)
			}
		}
		if open := o.Security != nil && len(*o.Security) == 0; open != (o.Path == "/openapi.json") {
			t.Errorf("%s: open %v", o, open)
		}
	}
	slices.Sort(inSource)
	slices.Sort(inDocument)
	if !slices.Equal(inSource, inDocument) {
		t.Errorf("the table has\n%s\nthe document has\n%s", strings.Join(inSource, "\n"), strings.Join(inDocument, "\n"))
	}
	var doc map[string]any
	raw := g.Do("GET", g.Admin+"/openapi.json", "", nil).Want(200)
	raw.JSON(&doc)
	info, _ := doc["info"].(map[string]any)
	if v, _ := doc["openapi"].(string); !strings.HasPrefix(v, "3.1.") || info["title"] == "" || info["version"] == "" {
		t.Errorf("%v %v", doc["openapi"], info)
	}
	for _, m := range regexp.MustCompile(`"\$ref": ?"#/([^"]+)"`).FindAllStringSubmatch(string(raw.Body), -1) {
		at := any(doc)
		for _, part := range strings.Split(m[1], "/") {
			object, _ := at.(map[string]any)
			at = object[part]
		}
		if at == nil {
			t.Errorf("#/%s is not there", m[1])
		}
	}
}

// PF-A13, PF-A22, PF-A24: the route tables, walked: without a credential each route is 401, with
// one of the other plane 403. What is not in a table is 404 or 405, and open is the document alone.
func TestEveryRouteWantsItsToken(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	s := g.Open("user:alice", "project", nil)
	for _, o := range operations(g) {
		if o.Path == "/openapi.json" {
			continue
		}
		url := g.Admin + o.example()
		for _, header := range [][]string{
			nil,
			{"Authorization", "Basic b3BlcmF0b3I6eA=="},
			{"Authorization", g.Operator},
			{"Authorization", "Bearer"},
			{"Authorization", "Bearer "},
			{"Authorization", "bearer " + g.Operator},
			{"Authorization", "Bearer " + g.Operator + "x"},
			{"Authorization", "Bearer " + strings.ToUpper(g.Operator)},
			{"X-Api-Key", g.Operator},
		} {
			if r := g.Do(o.Method, url, "", nil, header...); r.Status != 401 || r.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %q: %d %s", o, header, r.Status, r.Body)
			}
		}
		g.Do(o.Method, url, s.Token, nil).Refused(abi.CodeForbidden)
		for _, odd := range []string{strings.Replace(url, "/v1", "//v1", 1), strings.Replace(url, "/v1/", "/v1/./", 1), strings.Replace(url, "/v1/", "/V1/", 1), strings.Replace(url, "/v1", "/v%31", 1)} {
			if r := g.Do(o.Method, odd, "", nil); r.Status != 401 && r.Status != 404 {
				t.Errorf("%s: %d", odd, r.Status)
			}
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/biomes", "/v1/biomes/a/b/c", "/metrics", "/debug/pprof/", "/mcp", "/console"} {
		g.Do("GET", g.Admin+path, g.Operator, nil).Refused(abi.CodeNotFound)
	}
	if r := g.Control("PATCH", "/v1/biomes", nil).Refused(abi.CodeMethodNotAllowed); r.Header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow: %q", r.Header.Get("Allow"))
	}
	for _, o := range operationsAt(g, g.Invoke) {
		if o.Path == "/openapi.json" {
			continue
		}
		var body any
		argument := "01ARZ3NDEKTSV4RRFFQ69G5FAV"
		if o.RequestBody != nil {
			body, argument = none, "a:b@1"
		}
		url := g.Invoke + strings.NewReplacer("{ref}", argument, "{id}", argument).Replace(o.Path)
		g.Do(o.Method, url, "", body).Refused(abi.CodeUnauthenticated)
		g.Do(o.Method, url, g.Operator, body).Refused(abi.CodeForbidden)
		g.Do(o.Method, url, s.Token+"x", body).Refused(abi.CodeUnauthenticated)
	}
}

// X29, PF-A4, PF-A9: every operation that reads JSON reads it strictly: one document of known
// fields, each once, in its own spelling, in the one content type.
func TestEveryBodyIsStrict(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	fields := regexp.MustCompile(`the fields here are ([A-Za-z, ]+)`)
	walked := 0
	for _, o := range operations(g) {
		if !o.takes("application/json") {
			continue
		}
		walked++
		send := func(body string, header ...string) servertest.Response {
			return g.Control(o.Method, o.example(), []byte(body), header...)
		}
		for _, media := range []string{"text/plain", "application/json; charset=latin1", "application/json; x=y", "application/x-www-form-urlencoded", "application/wasm", "json", "application/json, text/plain"} {
			send("{}", "Content-Type", media).Refused(abi.CodeUnsupportedMedia)
		}
		send("{}", "Content-Encoding", "gzip").Refused(abi.CodeUploadUnsupported)
		send("{}", "Idempotency-Key", "k").Refused(abi.CodeIdempotencyUnbuilt)
		send(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`).Refused(abi.CodePayloadTooLarge)
		if strings.HasPrefix(o.Summary, "Refused") {
			continue // whatever it says
		}
		for name, body := range map[string]string{
			"nothing": "", "an array": "[]", "a number": "1", "null": "null", "a string": `"x"`, "half": `{"a":`, "two": "{} {}", "trailing": "{}x", "comment": "{}//", "a trailing comma": `{"a":1,}`,
			"single quotes": `{'a':1}`, "not UTF-8": "{\"a\":\"\xff\"}", "a byte order mark": "\ufeff{}", "NaN": `{"a":NaN}`,
			"deep": strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "very deep": strings.Repeat("[", 100_000),
		} {
			if r := send(body); r.Status != 400 {
				t.Errorf("%s with %s: %d %s", o, name, r.Status, r.Body)
			}
		}
		unknown := send(`{"noSuchField":1}`).Refused(abi.CodeUnknownField)
		m := fields.FindSubmatch(unknown.Body)
		if m == nil {
			t.Errorf("%s does not say which fields it knows: %s", o, unknown.Body)
			continue
		}
		for _, field := range strings.Split(string(m[1]), ", ") {
			if r := send(fmt.Sprintf(`{%q:1,%[1]q:1}`, field)); r.Status != 400 {
				t.Errorf("%s with %s twice: %d %s", o, field, r.Status, r.Body)
			}
			for _, spelt := range []string{strings.ToUpper(field), strings.ToUpper(field[:1]) + field[1:], " " + field} {
				send(fmt.Sprintf(`{%q:1}`, spelt)).Refused(abi.CodeUnknownField)
			}
			if r := send(fmt.Sprintf(`{%q:null}`, field)); r.Status < 400 || r.Status >= 500 {
				t.Errorf("%s with %s null: %d %s", o, field, r.Status, r.Body)
			}
		}
	}
	if walked < 8 {
		t.Errorf("%d operations read JSON", walked)
	}
}

// done is a request that succeeds, of one operation.
type done struct {
	operation string
	path      string
	body      any
	header    []string
}

// Every operation of the document does succeed, with the status that the document says. What
// can change answers an ETag, needs it to be changed (428), refuses an old one (412) and a
// malformed one (400).
func TestEveryOperationAndItsVersion(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	all := map[string]operation{}
	for _, o := range operations(g) {
		all[o.String()] = o
	}
	succeeded := map[string]bool{}
	run := func(d done) servertest.Response {
		t.Helper()
		o, known := all[d.operation]
		if !known {
			t.Fatalf("%s is not in the document", d.operation)
		}
		path := d.path
		if path == "" {
			path = o.Path
		}
		r := g.Control(o.Method, path, d.body, d.header...)
		if o.Responses[fmt.Sprint(r.Status)] == nil {
			t.Errorf("%s answers %d, which the document does not have: %s", d.operation, r.Status, r.Body)
		}
		succeeded[d.operation] = true
		return r
	}
	var made struct {
		ID string
		Of struct{ ID string }
	}
	wasm := []string{"Content-Type", "application/wasm"}
	upload := run(done{"POST /v1/biomes", "", script("op", nil, action{ref: "op:a.do@1", reach: abi.ReachOwner}), wasm})
	var b struct{ Biome struct{ Digest string } }
	upload.JSON(&b)
	install := map[string]any{"digest": b.Biome.Digest, "environments": []string{"environment:project"}}
	first := []string{"If-None-Match", "*"}
	secret := map[string]any{"value": "a-value-of-16-bytes", "uses": []map[string]any{{"kind": "hmac", "prefix": "test.v1:", "label": "public"}}}
	rule := map[string]any{"rule": map[string]any{"scheme": "https", "host": "a.example", "methods": []string{"GET"}, "path": "/"}}

	for _, d := range []done{
		{"GET /openapi.json", "", nil, nil},
		{"GET /v1/orgs", "", nil, nil},
		{"POST /v1/orgs", "", map[string]string{"id": "acme"}, nil},
		{"GET /v1/orgs/{org}/rates", "/v1/orgs/default/rates", nil, nil},
		{"PUT /v1/orgs/{org}/rates", "/v1/orgs/default/rates", map[string]int{"subjectPerHour": 1000, "clientPerHour": 1000}, []string{"If-Match", `"1"`}},
		{"GET /v1/environments", "", nil, nil},
		{"GET /v1/environments/{slug}", "/v1/environments/project", nil, nil},
		{"POST /v1/orgs/{org}/environments", "/v1/orgs/default/environments", map[string]string{"slug": "strict", "base": "environment:project"}, nil},
		{"GET /v1/orgs/{org}/environments", "/v1/orgs/default/environments", nil, nil},
		{"GET /v1/spaces", "", nil, nil},
		{"GET /v1/spaces/{id}", "/v1/spaces/default", nil, nil},
		{"POST /v1/spaces", "", map[string]string{"id": "p", "kind": "project", "parent": "default"}, nil},
		{"GET /v1/biomes", "", nil, nil},
		{"GET /v1/biomes/{name}", "/v1/biomes/op", nil, nil},
		{"GET /v1/biomes/{name}/versions", "/v1/biomes/op/versions", nil, nil},
		{"GET /v1/biomes/{name}/permissions", "/v1/biomes/op/permissions", nil, nil},
		{"GET /v1/biomes/{name}/suggested-grants", "/v1/biomes/op/suggested-grants?environment=environment:project", nil, nil},
		{"GET /v1/installs", "", nil, nil},
		{"GET /v1/capabilities", "", nil, nil},
		{"GET /v1/grants", "", nil, nil},
		{"GET /v1/environment-grants", "", nil, nil},
		{"GET /v1/approve-grants", "", nil, nil},
		{"GET /v1/approvals", "", nil, nil},
		{"GET /v1/sessions", "", nil, nil},
		{"GET /v1/tokens", "", nil, nil},
		{"GET /v1/secrets", "", nil, nil},
		{"GET /v1/endpoints", "", nil, nil},
		{"GET /v1/audit", "", nil, nil},
		{"GET /v1/audit/head", "", nil, nil},
	} {
		run(d)
	}
	g.Control("POST", "/v1/tokens", map[string]string{"principal": "decider", "role": "approver"}).Want(201)
	for _, c := range []struct{ post, del, under string }{
		{"POST /v1/approve-grants", "DELETE /v1/approve-grants/{id}", "/v1/approve-grants/"},
		{"POST /v1/grants", "DELETE /v1/grants/{id}", "/v1/grants/"},
		{"POST /v1/environment-grants", "DELETE /v1/environment-grants/{id}", "/v1/environment-grants/"},
		{"POST /v1/sessions", "DELETE /v1/sessions/{id}", "/v1/sessions/"},
		{"POST /v1/tokens", "DELETE /v1/tokens/{id}", "/v1/tokens/"},
	} {
		body := map[string]map[string]string{
			"/v1/grants/":             {"subject": "user:alice", "capability": "op:a.do@1", "environment": "environment:project"},
			"/v1/environment-grants/": {"principal": "operator", "subject": "user:alice", "environment": "environment:project"},
			"/v1/approve-grants/":     {"principal": "decider", "capability": "*"},
			"/v1/sessions/":           {"subject": "user:alice", "environment": "environment:project"},
			"/v1/tokens/":             {"principal": "helper", "role": "auditor"},
		}[c.under]
		made.ID, made.Of.ID = "", ""
		r := run(done{c.post, "", body, nil})
		r.JSON(&made)
		id := made.ID + made.Of.ID
		if got := r.Header.Get("Location"); got != c.under+id {
			t.Errorf("%s: Location %q", c.post, got)
		}
		if c.under == "/v1/sessions/" {
			run(done{"GET /v1/sessions/{id}", c.under + id, nil, nil})
		}
		if c.under == "/v1/environment-grants/" {
			run(done{"GET /v1/environment-grants/{id}", c.under + id, nil, nil})
		}
		run(done{c.del, c.under + id, nil, nil})
		g.Control("DELETE", c.under+"01ARZ3NDEKTSV4RRFFQ69G5FAV", nil).Refused(abi.CodeNotFound)
	}
	for _, steps := range [][]step{nil, {do("kv_get", "k")}} {
		admit(g, "back", script("back", nil, action{ref: "back:a.do@1", reach: abi.ReachOwner, steps: steps}), []string{"project"}, nil)
		revokeAll(g, "user:alice", "back:a.do@1")
	}
	run(done{"POST /v1/biomes/{name}/promote", "/v1/biomes/op/promote", install, nil})
	run(done{"POST /v1/biomes/{name}/rollback", "/v1/biomes/back/rollback", nil, []string{"If-Match", `"2"`}})
	admit(g, "asks", script("asks", nil, action{ref: "asks:a.do@1", reach: abi.ReachOwner, shape: wantsApproval}), []string{"project"}, nil)
	// Whoever decides is somebody else than who opens the session: another administrator does that.
	var opener struct{ Token string }
	g.Control("POST", "/v1/tokens", map[string]string{"principal": "opener", "role": "org-admin"}).Want(201).JSON(&opener)
	g.Do("POST", g.Admin+"/v1/sessions", opener.Token, map[string]string{"subject": "user:alice", "environment": "environment:project"}).Want(201).JSON(&opener)
	asks := &servertest.Session{G: g, Token: opener.Token}
	g.Grant("user:alice", "back:a.do@1", "project")
	marked := g.Open("user:alice", "project", nil)
	marked.Invoke("back:a.do@1", none, "Ecotone-Classification", "confidential").Want(200)
	run(done{"POST /v1/sessions/{id}/declassify", "/v1/sessions/" + marked.ID + "/declassify", map[string]string{
		"capability": "back:a.do@1", "input": "{}", "to": "public", "sink": "output",
	}, nil})
	for _, verdict := range []string{"approve", "reject"} {
		id := asks.Invoke("asks:a.do@1", none).Waits()
		run(done{"GET /v1/approvals/{id}", "/v1/approvals/" + id, nil, nil})
		run(done{"POST /v1/approvals/{id}/" + verdict, "/v1/approvals/" + id + "/" + verdict, map[string]string{}, nil})
	}
	var rows struct{ Items []struct{ AuditID string } }
	g.Control("GET", "/v1/audit?limit=1", nil).Want(200).JSON(&rows)
	run(done{"GET /v1/audit/{id}", "/v1/audit/" + rows.Items[0].AuditID, nil, nil})

	for _, c := range []struct {
		put, get, del, path string
		body                any
		exists              bool
	}{
		{"PUT /v1/orgs/{org}/overrides/{slug}", "GET /v1/orgs/{org}/overrides/{slug}", "DELETE /v1/orgs/{org}/overrides/{slug}", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": "secret"}, false},
		{"PUT /v1/endpoints/{name}", "GET /v1/endpoints/{name}", "DELETE /v1/endpoints/{name}", "/v1/endpoints/e", rule, false},
		{"PUT /v1/secrets/{name}", "GET /v1/secrets/{name}", "DELETE /v1/secrets/{name}", "/v1/secrets/s", secret, false},
		{"PUT /v1/installs/{biome}", "GET /v1/installs/{biome}", "DELETE /v1/installs/{biome}", "/v1/installs/op", install, false},
		{"PUT /v1/capabilities/{ref}/lifecycle", "GET /v1/capabilities/{ref}", "", "/v1/capabilities/op:a.do@1/lifecycle", map[string]string{"state": "deprecated"}, false},
		{"PUT /v1/environments/{slug}", "GET /v1/environments/{slug}", "", "/v1/environments/app", map[string]any{"limits": map[string]int{"wall": 4000}}, true},
		{"PUT /v1/orgs/{org}/environments/{slug}", "GET /v1/orgs/{org}/environments/{slug}", "DELETE /v1/orgs/{org}/environments/{slug}", "/v1/orgs/default/environments/strict", map[string]any{"reachCeiling": "owner"}, true},
		{"POST /v1/biomes/{name}/disable", "GET /v1/biomes/{name}", "", "/v1/biomes/op/disable", nil, true},
		{"POST /v1/biomes/{name}/enable", "GET /v1/biomes/{name}", "", "/v1/biomes/op/enable", nil, true},
		{"POST /v1/biomes/{name}/archive", "GET /v1/biomes/{name}", "", "/v1/biomes/op/archive", nil, true},
	} {
		method := strings.Fields(c.put)[0]
		read := regexp.MustCompile("/(disable|enable|lifecycle|archive)$").ReplaceAllString(c.path, "")
		var tag string
		if c.exists {
			tag = g.Control("GET", read, nil).Want(200).Header.Get("ETag")
		} else {
			g.Control(method, c.path, c.body, "If-Match", `"1"`).Refused(abi.CodePreconditionFailed)
			tag = run(done{c.put, c.path, c.body, first}).Header.Get("ETag")
			g.Control(method, c.path, c.body, first...).Refused(abi.CodePreconditionFailed)
		}
		g.Control(method, c.path, c.body).Refused(abi.CodePreconditionNeeded)
		g.Control(method, c.path, c.body, "If-Match", `"999"`).Refused(abi.CodePreconditionFailed)
		for _, bad := range []string{"1", "*", `""`, `"x"`, `W/"1"`, `"1", "2"`, `"-1"`, `"1`} {
			g.Control(method, c.path, c.body, "If-Match", bad).Refused(abi.CodeInvalidRequest)
		}
		g.Control(method, c.path, c.body, "If-Match", tag, "If-None-Match", "*").Refused(abi.CodeInvalidRequest)
		g.Control(method, c.path, c.body, "If-None-Match", tag).Refused(abi.CodeInvalidRequest)
		next := run(done{c.put, c.path, c.body, []string{"If-Match", tag}}).Header.Get("ETag")
		if next == tag || next == "" {
			t.Errorf("%s: the ETag was %s and is %s", c.put, tag, next)
		}
		g.Control(method, c.path, c.body, "If-Match", tag).Refused(abi.CodePreconditionFailed)
		if c.get != "" {
			if got := run(done{c.get, read, nil, nil}).Header.Get("ETag"); got != next {
				t.Errorf("%s: the ETag is %s, PUT said %s", c.get, got, next)
			}
		}
		if c.del != "" {
			g.Control("DELETE", c.path, nil).Refused(abi.CodePreconditionNeeded)
			g.Control("DELETE", c.path, nil, "If-Match", tag).Refused(abi.CodePreconditionFailed)
			run(done{c.del, c.path, nil, []string{"If-Match", next}})
			g.Control("GET", c.path, nil).Refused(abi.CodeNotFound)
			g.Control("DELETE", c.path, nil, "If-Match", next).Refused(abi.CodeNotFound)
		}
	}
	run(done{"GET /v1/orgs/{org}/overrides", "/v1/orgs/default/overrides", nil, nil})
	for name, o := range all {
		if !succeeded[name] && !strings.HasPrefix(o.Summary, "Refused") {
			t.Errorf("%s was not tried", name)
		}
	}
}

// Cursor pages: every item once and in order, whatever the size of a page; what a parameter does
// not mean is refused.
func TestPages(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	for i := range 6 {
		g.Control("POST", "/v1/spaces", map[string]string{"id": fmt.Sprintf("p%d", i), "kind": "project", "parent": "default"}).Want(201)
		g.Open("user:alice", "project", nil)
	}
	for _, path := range []string{"/v1/spaces", "/v1/sessions", "/v1/audit"} {
		ids := func(limit int) (out []string) {
			after := ""
			for pages := 0; pages < 200; pages++ {
				var page struct {
					Items []struct{ ID, AuditID string }
					Next  string
				}
				g.Control("GET", fmt.Sprintf("%s?limit=%d%s", path, limit, after), nil).Want(200).JSON(&page)
				if len(page.Items) > limit {
					t.Errorf("%s: a page of %d", path, len(page.Items))
				}
				for _, i := range page.Items {
					out = append(out, i.ID+i.AuditID)
				}
				if page.Next == "" {
					return out
				}
				after = "&after=" + page.Next
			}
			t.Fatalf("%s has no end", path)
			return nil
		}
		whole := ids(500)
		if len(whole) < 6 {
			t.Fatalf("%s has %d items", path, len(whole))
		}
		for _, limit := range []int{1, 3, 7} {
			if got := ids(limit); !slices.Equal(got, whole) {
				t.Errorf("%s by %d: %q, whole: %q", path, limit, got, whole)
			}
		}
		for _, q := range []string{"limit=0", "limit=501", "limit=-1", "limit=x", "limit=01", "limit=1&limit=2", "size=1", "Limit=1", "org=default&org=acme", "limit=1;after=x", "org=../x"} {
			g.Control("GET", path+"?"+q, nil).Refused(abi.CodeInvalidRequest)
		}
	}
}

// M60, PF-H4: whatever goes wrong, the answer is a problem of the catalogue, and says nothing of
// the inside. Every answer of every test here is held to that by the harness; this test provokes
// many.
func TestProblemsSayNothingOfTheInside(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	s := g.Open("user:alice", "project", nil)
	odd := []string{"%00", "..%2f..%2fetc%2fpasswd", "a%0d%0aX-Evil:1", strings.Repeat("a", 2000), "%ff", "%E2%80%AE", "'%22%3Cscript%3E", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "NUL", "~"}
	for _, o := range operations(g) {
		for _, value := range odd {
			if !strings.Contains(o.Path, "{") {
				continue
			}
			path := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(o.Path, value)
			var body any
			if o.RequestBody != nil {
				body = none
			}
			if r := g.Control(o.Method, path, body, "If-Match", `"1"`); r.Status < 400 || r.Status >= 500 {
				t.Errorf("%s %s: %d %s", o.Method, path, r.Status, r.Body)
			}
		}
		if o.Method == http.MethodGet && o.Path != "/openapi.json" {
			if r := g.Control("GET", o.example()+"?after="+strings.Repeat("z", 100), nil); r.Status >= 500 {
				t.Errorf("%s: %d %s", o, r.Status, r.Body)
			}
		}
	}
	for _, value := range odd {
		s.Invoke(value, none).Refused(abi.CodeInvalidRequest)
		for _, path := range []string{"/v1/invocations/" + value, "/v1/" + value} {
			if r := g.Do("GET", g.Invoke+path, s.Token, nil); r.Status != 404 && r.Status != 400 {
				t.Errorf("%s: %d %s", path, r.Status, r.Body)
			}
		}
	}
	for name, module := range map[string][]byte{
		"nothing": {}, "text": []byte("(module)"), "half a module": []byte("\x00asm\x01\x00\x00"), "another version": []byte("\x00asm\x02\x00\x00\x00"), "a zip": []byte("PK\x03\x04zzzz"),
		"no manifest": []byte("\x00asm\x01\x00\x00\x00"), "zeroes": make([]byte, 5000), "a cut module": bytes.TrimSuffix(script("x", nil), []byte("}")),
	} {
		if r := g.Upload(module); r.Status < 400 || r.Status >= 500 {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
}

// Package servertest starts real gateways for tests and speaks to them as clients do: over
// sockets, with tokens, in JSON.
//
// A test binary that uses it must call [Main] from TestMain, because the gateway compiles
// modules in a child that is the binary itself.
package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/host/compile"
)

// Main runs the tests, or the compile child.
func Main(m *testing.M) {
	compile.RunIfChild()
	verify()
	os.Exit(m.Run())
}

// verify has every instance compared with its image when it is lent, in all servers of the tests; a
// gateway that found a difference fails its test when it stops (S12).
func verify() { _ = os.Setenv("ECOTONE_VERIFY", "all") }

// MainOfAllCodes is [Main] for the tests that together reach each code of the catalogue: a whole run
// that reaches less fails, though each of its tests passes.
func MainOfAllCodes(m *testing.M) {
	compile.RunIfChild()
	verify()
	status := m.Run()
	if whole() {
		if err := settleCodes(status == 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// whole reports whether all tests were asked for.
func whole() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f == nil || f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// Gateway is a running gateway, in the process of the test.
type Gateway struct {
	T         testing.TB
	Dir       string
	Invoke    string // base URL of the data plane
	Admin     string
	Ops       string
	MCP       string // endpoint of the direct shape; the other is /meta below it
	Operator  string // token
	Dev       string // token; "" without Dev
	Server    *server.Server
	Catalogue *catalogue.Switch // stop or slow it here
	Log       *bytes.Buffer     // read it after Stop
	Client    *http.Client      // what Do sends with; another one trusts a test's authority

	cancel context.CancelFunc
	done   chan error
	seen   *sightings
}

// Start opens a gateway in a new directory, or in the one an option names, and stops it when
// the test ends.
func Start(t testing.TB, options ...func(*server.Options)) *Gateway {
	t.Helper()
	g := &Gateway{T: t, Log: &bytes.Buffer{}, Client: client, done: make(chan error, 1), seen: watch(t)}
	o := defaults(t, append([]func(*server.Options){func(o *server.Options) {
		o.Log = slog.New(slog.NewJSONHandler(g.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Catalogue = func(c catalogue.Catalogue) catalogue.Catalogue {
			g.Catalogue = catalogue.NewSwitch(c)
			return g.Catalogue
		}
	}}, options...))
	g.Dir = o.Dir
	ctx, cancel := context.WithCancel(context.Background())
	s, err := server.Open(ctx, o)
	if err != nil {
		cancel()
		t.Fatalf("the gateway does not open: %v", err)
	}
	g.Server, g.cancel = s, cancel
	data, control, ops := s.Addresses()
	scheme := "http://"
	if o.TLSCert != "" {
		scheme = "https://"
	}
	g.Invoke, g.Admin, g.Ops = scheme+data, scheme+control, scheme+ops
	g.MCP = s.MCP()
	ready := make(chan struct{})
	go func() { g.done <- s.Run(ctx, readyWriter(ready)) }()
	<-ready
	g.Operator = readToken(t, g.Dir, "operator.token")
	if o.Dev {
		g.Dev = readToken(t, g.Dir, "dev.token")
	}
	t.Cleanup(g.Stop)
	return g
}

// defaults are the options of a gateway in a new directory, changed by those that are given.
func defaults(t testing.TB, options []func(*server.Options)) server.Options {
	o := server.Options{
		Dir: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		Limits: abi.DefaultLimits(), DrainTimeout: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
		SubjectRate: rate.MaxPerHour, ClientRate: rate.MaxPerHour, // the defaults have tests of their own
	}
	for _, f := range options {
		f(&o)
	}
	return o
}

type readyWriter chan struct{}

func (r readyWriter) Write(p []byte) (int, error) { close(r); return len(p), nil }

// Stop drains and closes the gateway. The test fails when that fails.
func (g *Gateway) Stop() {
	g.T.Helper()
	if g.cancel == nil {
		return
	}
	g.cancel()
	g.cancel = nil
	if err := <-g.done; err != nil {
		g.T.Errorf("the gateway did not stop cleanly: %v", err)
	}
	if log := g.Log.Bytes(); !bytes.Contains(log, []byte(`"verify":true`)) || bytes.Contains(log, []byte("differs from its image")) {
		g.T.Error("instances were not verified, or one of them was not what its image is")
	}
}

// Dev makes a development gateway.
func Dev(o *server.Options) { o.Dev = true }

// In opens the data directory of another gateway that was stopped.
func In(dir string) func(*server.Options) { return func(o *server.Options) { o.Dir = dir } }

func readToken(t testing.TB, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// Response is an answer, read whole.
type Response struct {
	T      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// Code is the code of a problem document, or "".
func (r Response) Code() abi.Code {
	var p struct {
		Code abi.Code `json:"code"`
	}
	_ = json.Unmarshal(r.Body, &p)
	return p.Code
}

// JSON decodes the body into v.
func (r Response) JSON(v any) {
	r.T.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		r.T.Fatalf("%v in %d %s", err, r.Status, r.Body)
	}
}

// Want fails the test when the status is another.
func (r Response) Want(status int) Response {
	r.T.Helper()
	if r.Status != status {
		r.T.Fatalf("status %d where %d was expected: %s", r.Status, status, r.Body)
	}
	return r
}

// Refused fails the test unless the answer is a problem document with the code and its status.
func (r Response) Refused(code abi.Code) Response {
	r.T.Helper()
	info, known := code.Info()
	if !known {
		r.T.Fatalf("%s is not in the catalogue", code)
	}
	if r.Code() != code || r.Status != info.Status || r.Header.Get("Content-Type") != "application/problem+json" {
		r.T.Fatalf("expected %s (%d), got %d %s: %s", code, info.Status, r.Status, r.Header.Get("Content-Type"), r.Body)
	}
	return r
}

// Waits fails the test unless the answer is that a person has to approve it first, and returns the id to ask
// about.
func (r Response) Waits() string {
	r.T.Helper()
	var w struct{ InvocationID, Status, Approval string }
	r.JSON(&w)
	if r.Status != http.StatusAccepted || r.Code() != abi.CodeApprovalRequired || w.Status != "needs_approval" || w.Approval == "" ||
		r.Header.Get("Location") != "/v1/invocations/"+w.InvocationID || r.Header.Get("Content-Type") != "application/json" {
		r.T.Fatalf("expected to wait for an approval, got %d: %s", r.Status, r.Body)
	}
	return w.Approval
}

// Do sends one request. A body that is not []byte or nil is sent as JSON.
func (g *Gateway) Do(method, url, token string, body any, header ...string) Response {
	g.T.Helper()
	var raw []byte
	contentType := ""
	switch b := body.(type) {
	case nil:
	case []byte:
		raw, contentType = b, "application/json"
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			g.T.Fatal(err)
		}
		contentType = "application/json"
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(raw))
	if err != nil {
		g.T.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if strings.EqualFold(header[i], "Host") {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := g.Client.Do(req)
	if err != nil {
		g.T.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		g.T.Fatal(err)
	}
	r := Response{g.T, res.StatusCode, res.Header, out}
	r.checkProblem(method + " " + url)
	g.checkContract(req, raw, r)
	g.seen.read(req.URL.Path, r)
	return r
}

// inside is what no answer may say: files, packages, stacks and texts of the Go runtime.
var inside = regexp.MustCompile(`/tmp/|\.go:\d|goroutine |open /|github\.com/|golang\.org/|runtime error|panic|wazero|badger|[a-z]+\.[A-Z][A-Za-z]+Error\b|%!|json: `)

// checkProblem holds every answer that is a problem to the catalogue (M60, PF-H4), whatever the
// test is about.
func (r Response) checkProblem(request string) {
	r.T.Helper()
	if r.Status < 400 {
		return
	}
	var p struct {
		Type, Title, Detail string
		Status              int
		Code                abi.Code
		Kind                abi.Kind
		Retryable           *bool
	}
	if err := json.Unmarshal(r.Body, &p); err != nil {
		if r.Header.Get("Content-Type") == "application/problem+json" {
			r.T.Errorf("%s: a problem that is no JSON: %s", request, r.Body)
		}
		return // readiness and what the HTTP library itself refuses
	}
	if r.Header.Get("Content-Type") != "application/problem+json" {
		return
	}
	info, known := p.Code.Info()
	if !known || p.Status != r.Status || info.Status != r.Status || info.Kind != p.Kind || p.Type != "urn:ecotone:code:"+string(p.Code) ||
		p.Title == "" || p.Retryable == nil || *p.Retryable != p.Kind.Retryable() {
		r.T.Errorf("%s: a problem that is not as the catalogue says: %d %s", request, r.Status, r.Body)
	}
	if said := inside.Find(r.Body); said != nil {
		r.T.Errorf("%s: the answer says %q: %s", request, said, r.Body)
	}
}

var client = &http.Client{
	Timeout:       2 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableKeepAlives: true},
}

// Control sends one request to the control plane as the operator.
func (g *Gateway) Control(method, path string, body any, header ...string) Response {
	g.T.Helper()
	return g.Do(method, g.Admin+path, g.Operator, body, header...)
}

// Upload uploads a module as the operator.
func (g *Gateway) Upload(module []byte) Response {
	g.T.Helper()
	return g.Control("POST", "/v1/biomes", module, "Content-Type", "application/wasm")
}

// Install admits the newest upload of a biome. more are further members of the request.
func (g *Gateway) Install(biome string, environments []string, more map[string]any) Response {
	g.T.Helper()
	var b struct {
		Digest string `json:"digest"`
	}
	g.Control("GET", "/v1/biomes/"+biome, nil).Want(200).JSON(&b)
	refs := make([]string, len(environments))
	for i, e := range environments {
		refs[i] = "environment:" + e
	}
	in := map[string]any{"digest": b.Digest, "environments": refs}
	for k, v := range more {
		in[k] = v
	}
	header := []string{"If-None-Match", "*"}
	if was := g.Control("GET", "/v1/installs/"+biome, nil); was.Status == 200 {
		header = []string{"If-Match", was.Header.Get("ETag")}
	}
	return g.Control("PUT", "/v1/installs/"+biome, in, header...)
}

// Grant gives one grant and returns its id.
func (g *Gateway) Grant(subject, ref, environment string, globs ...string) string {
	g.T.Helper()
	in := map[string]any{"subject": subject, "capability": ref, "environment": "environment:" + environment}
	if globs != nil {
		in["globs"] = globs
	}
	var out struct {
		ID string `json:"id"`
	}
	g.Control("POST", "/v1/grants", in).Want(201).JSON(&out)
	return out.ID
}

// Session is an open session.
type Session struct {
	G         *Gateway
	ID        string
	Token     string
	Workspace string
}

// Open opens a session. more are further members of the request.
func (g *Gateway) Open(subject, environment string, more map[string]any) *Session {
	g.T.Helper()
	in := map[string]any{"subject": subject, "environment": "environment:" + environment}
	for k, v := range more {
		in[k] = v
	}
	var out struct {
		Token string `json:"token"`
		Of    struct {
			ID        string `json:"id"`
			Workspace string `json:"workspace"`
		} `json:"of"`
	}
	g.Control("POST", "/v1/sessions", in).Want(201).JSON(&out)
	return &Session{g, out.Of.ID, out.Token, out.Of.Workspace}
}

// Invoke invokes a capability.
func (s *Session) Invoke(ref string, input any, header ...string) Response {
	s.G.T.Helper()
	return s.G.Do("POST", s.G.Invoke+"/v1/invoke/"+ref, s.Token, input, header...)
}

// Explain asks for every check.
func (s *Session) Explain(ref string, input any, header ...string) Response {
	s.G.T.Helper()
	return s.G.Do("POST", s.G.Invoke+"/v1/explain/"+ref, s.Token, input, header...)
}

// Row fetches an audit row of the organisation default.
func (g *Gateway) Row(id string) map[string]any {
	g.T.Helper()
	var row map[string]any
	g.Control("GET", "/v1/audit/"+id, nil).Want(200).JSON(&row)
	return row
}

// Rows fetches up to 500 rows of an organisation, newest first; query is added to the request.
func (g *Gateway) Rows(query string) []map[string]any {
	g.T.Helper()
	var page struct {
		Items []map[string]any `json:"items"`
	}
	g.Control("GET", fmt.Sprintf("/v1/audit?limit=500%s", query), nil).Want(200).JSON(&page)
	return page.Items
}

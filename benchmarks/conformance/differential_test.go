package conformance_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// rig is a gateway, and an origin that both sides may ask.
type rig struct {
	g       *servertest.Gateway
	tokens  []string // of its sessions
	origin  *httptest.Server
	folder  string // that the SDK mounts at /mnt
	mu      sync.Mutex
	headers []http.Header // of requests to the origin
}

func newRig(t *testing.T) *rig {
	r := &rig{folder: t.TempDir()}
	r.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.headers = append(r.headers, req.Header.Clone())
		r.mu.Unlock()
		w.Header()["Date"] = nil // the one thing that would not be the same twice
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Origin", "conformance")
		fmt.Fprintf(w, `{"method":%q,"path":%q}`, req.Method, req.URL.Path)
	}))
	t.Cleanup(r.origin.Close)
	r.g = servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	host, port, _ := strings.Cut(strings.TrimPrefix(r.origin.URL, "http://"), ":")
	r.g.Control("PUT", "/v1/endpoints/origin", map[string]any{
		"rule":     map[string]any{"scheme": "http", "host": host, "port": json.Number(port), "methods": []string{"GET"}, "path": "/**"},
		"loopback": true, "clearance": "regulated", "label": "public",
	}, "If-None-Match", "*").Want(200)
	return r
}

// session is a new one, with the file in its workspace as it is anew in the SDK's folder. Each plug-in has its own: the file was
// put there behind the gateway's back, and who reads it goes on as one who has.
func (r *rig) session(t *testing.T) *servertest.Session {
	s := r.g.Open("user:alice", "project", map[string]any{"files": true})
	write(t, r.folder)
	write(t, filepath.Join(r.g.Dir, "workspaces", s.Workspace, "mnt"))
	r.tokens = append(r.tokens, s.Token)
	return s
}

func write(t *testing.T, folder string) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "test.txt"), []byte("hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// module is a plug-in as it ships; the URL that one of them holds is the origin's.
func (r *rig) module(t *testing.T, p *plugin) []byte {
	code := inSDK(t, "wasm", p.file)
	if p.file != "http.wasm" {
		return code
	}
	const held = "https://jsonplaceholder.typicode.com/todos/1"
	url := r.origin.URL + "/"
	url += strings.Repeat("x", len(held)-len(url))
	if !bytes.Contains(code, []byte(held)) {
		t.Fatal("the plug-in does not hold the URL that it did")
	}
	return bytes.Replace(code, []byte(held), []byte(url), 1)
}

func name(p *plugin) string {
	return "p-" + strings.NewReplacer(".wasm", "", ".", "-", "_", "-").Replace(p.file)
}

func ref(p *plugin, export string) abi.CapabilityRef {
	return abi.CapabilityRef("plugin:" + name(p) + "-" + strings.ReplaceAll(strings.Trim(export, "_"), "_", "-") + ".run@1")
}

// upload puts the manifest beside the plug-in, which is not changed otherwise.
func (r *rig) upload(t *testing.T, p *plugin, reach abi.Reach) servertest.Response {
	m := abi.Manifest{Name: name(p), Version: "1.0.0", ABI: abi.FaceExtism}
	exports := []string{}
	for _, c := range p.calls {
		if !slices.Contains(exports, c.export) {
			exports = append(exports, c.export)
		}
	}
	if len(exports) == 0 {
		exports = append(exports, map[bool]string{true: "capitalize", false: "run_test"}[p.file == "lib.wasm"])
	}
	if reach == abi.ReachIntegration {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	}
	for _, e := range exports {
		m.Provides = append(m.Provides, abi.Descriptor{
			Ref: ref(p, e), Export: e, Title: p.file, Summary: "A plug-in of the SDK.", SideEffects: "none",
			InputSchema: json.RawMessage(`{"type":"string"}`), OutputSchema: json.RawMessage(`{"type":"string"}`),
			InputEncoding: abi.EncodingBase64, OutputEncoding: abi.EncodingBase64,
			RiskTier: abi.RiskLow, OutputClassification: abi.Public, Reach: reach,
		})
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	module, err := wasm.SetCustom(r.module(t, p), abi.ManifestSection, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return r.g.Upload(module)
}

// here is what a call comes to in the gateway, and there what it comes to in the SDK. Both are written
// the same way: the output, or how it failed.
func (r *rig) here(t *testing.T, s *servertest.Session, p *plugin, c *call) string {
	var header []string
	if c.deadline != "" {
		header = []string{"Ecotone-Deadline-Ms", c.deadline}
	}
	res := s.Invoke(string(ref(p, c.export)), base64.StdEncoding.EncodeToString([]byte(r.input(c))), header...)
	if res.Status == 200 {
		var out []byte
		res.JSON(&out)
		return "output " + strconv.Quote(string(out))
	}
	var problem struct {
		Code   abi.Code
		Detail string
		Guest  *struct{ Code, Message string }
	}
	res.JSON(&problem)
	switch problem.Code {
	case abi.CodeGuestError:
		if problem.Guest != nil {
			return "error " + strconv.Quote(problem.Guest.Message)
		}
		return strings.TrimPrefix(problem.Detail, "the capability ")
	case abi.CodeGuestExit:
		return "exit " + regexp.MustCompile(`\d+`).FindString(problem.Detail)
	case abi.CodeDeadline:
		return "deadline"
	case abi.CodeGuestTrap:
		return "trap"
	}
	return string(problem.Code) + " " + problem.Detail
}

func (r *rig) input(c *call) string {
	if c.origin {
		return fmt.Sprintf(c.input, r.origin.URL)
	}
	return c.input
}

func (r *rig) there(t *testing.T, instance *extism.Plugin, c *call) string {
	instance.Config = c.config
	status, out, err := instance.Call(c.export, []byte(r.input(c)))
	var exit *sys.ExitError
	switch {
	case err == nil && status != 0:
		return fmt.Sprintf("returned %d", int32(status))
	case err == nil:
		return "output " + strconv.Quote(string(out))
	case errors.As(err, &exit) && exit.ExitCode() == sys.ExitCodeDeadlineExceeded:
		return "deadline"
	case errors.As(err, &exit):
		return "exit " + strconv.Itoa(int(exit.ExitCode()))
	case strings.Contains(err.Error(), "wasm stack trace"):
		return "trap"
	}
	return "error " + strconv.Quote(err.Error())
}

// instance is a plug-in as an embedder of the SDK runs it, with all that it asks for.
func (r *rig) instance(t *testing.T, p *plugin, c *call) *extism.Plugin {
	manifest := extism.Manifest{
		Wasm: []extism.Wasm{extism.WasmData{Data: r.module(t, p)}}, AllowedHosts: []string{"127.0.0.1"}, AllowedPaths: map[string]string{r.folder: "/mnt"},
	}
	if c.deadline != "" {
		ms, err := strconv.ParseUint(c.deadline, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		manifest.Timeout = ms
	}
	instance, err := extism.NewPlugin(t.Context(), manifest, extism.PluginConfig{
		EnableWasi: true, EnableHttpResponseHeaders: true, ModuleConfig: wazero.NewModuleConfig().WithSysWalltime().WithSysNanotime(),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	instance.SetLogger(func(extism.LogLevel, string) {})
	t.Cleanup(func() { _ = instance.Close(context.Background()) })
	return instance
}

// Every plug-in that ships in the SDK comes to the same here and there, or to what its row says and why.
func TestPluginsOfTheSDK(t *testing.T) {
	r := newRig(t)
	for i := range plugins {
		p := &plugins[i]
		t.Run(p.file, func(t *testing.T) {
			outer := r.g.T
			r.g.T = t // so that what fails is this row
			defer func() { r.g.T = outer }()
			reach := max(p.reach, abi.ReachOwner)
			res := r.upload(t, p, reach)
			if p.refused != "" {
				if res.Refused(abi.CodeModuleRefused); !bytes.Contains(res.Body, []byte(`"code":"`+p.refused+`"`)) {
					t.Errorf("it is refused otherwise: %s", res.Body)
				}
				return
			}
			res.Want(201)
			granted := map[string]bool{}
			for _, c := range p.calls {
				if !granted[c.export] {
					r.g.Grant("user:alice", string(ref(p, c.export)), "project")
					granted[c.export] = true
				}
			}
			session := r.session(t)
			var instance *extism.Plugin
			for n := range p.calls {
				c := &p.calls[n]
				more := map[string]any{}
				if c.config != nil {
					more["config"] = c.config
				}
				if reach == abi.ReachIntegration {
					more["endpoints"] = []string{"origin"}
				}
				r.g.Install(name(p), []string{"project"}, more).Want(200)
				if instance == nil || !p.kept {
					instance = r.instance(t, p, c)
				}
				want := r.there(t, instance, c)
				if c.here != "" {
					if c.here == want {
						t.Errorf("call %d: the row says that the SDK differs, and it does not: %s", n, want)
					}
					want = c.here
				}
				t.Logf("call %d of %s: %s", n, c.export, want)
				if got := r.here(t, session, p, c); got != want {
					t.Errorf("call %d of %s with %q:\nhere  %s\nthere %s", n, c.export, c.input, got, want)
				}
			}
		})
	}
	r.ownHeaders(t)
}

// ownHeaders: PF-E9, PF-F10: what an origin is sent is the plug-in's and the host's own; nothing of the
// caller's session is in it.
func (r *rig) ownHeaders(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := 0
	for _, h := range r.headers {
		if h.Get("User-Agent") != "ecotone" {
			continue
		}
		ours++
		for name, values := range h {
			if slices.Contains([]string{"Authorization", "Cookie", "Ecotone-Invocation", "Ecotone-Classification", "X-Forwarded-For"}, name) ||
				slices.ContainsFunc(r.tokens, func(token string) bool { return strings.Contains(strings.Join(values, " "), token) }) {
				t.Errorf("the origin was sent %s: %s", name, values)
			}
		}
	}
	if ours == 0 {
		t.Error("the origin was asked by nobody here")
	}
}

// Every module of the SDK has its row, and every row its module.
func TestEveryPluginHasARow(t *testing.T) {
	dir, err := sdk()
	if err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Glob(filepath.Join(dir, "wasm", "*.wasm"))
	if err != nil || len(there) == 0 {
		t.Fatal(there, err)
	}
	rows := map[string]bool{}
	for _, p := range plugins {
		rows[p.file] = true
		if p.refused != "" && p.differs == "" {
			t.Errorf("%s is refused and its row does not say why", p.file)
		}
	}
	for _, path := range there {
		if file := filepath.Base(path); !rows[file] {
			t.Errorf("%s has no row", file)
		}
	}
	if len(there) != len(plugins) {
		t.Errorf("%d modules, %d rows", len(there), len(plugins))
	}
}

// The table of docs/extism.md is the one here.
func TestDocumentedDifferences(t *testing.T) {
	page, err := os.ReadFile("../../docs/extism.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		what := "the same"
		if p.refused != "" {
			what = "refused: `" + string(p.refused) + "`"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", p.file, what, p.differs); !bytes.Contains(page, []byte(row)) {
			t.Errorf("docs/extism.md lacks the row\n%s", row)
		}
	}
}

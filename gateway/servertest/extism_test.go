package servertest_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// speak answers what a plug-in says, which is text.
func speak(r servertest.Response) string {
	r.T.Helper()
	var out string
	r.Want(200).JSON(&out)
	return out
}

// An Extism plug-in end to end, under sandbox and project: its input and output, its configuration, its
// variables, its errors, its log, its requests; and what it is refused, with receipts and rows.
func TestExtismPlugin(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(rw, r, "/page", http.StatusFound)
			return
		}
		for name := range r.Header {
			if !slices.Contains([]string{"User-Agent", "Accept-Encoding", "Ecotone-Hop"}, name) && !strings.HasPrefix(name, "Ecotone") {
				t.Errorf("the origin is sent %s", name)
			}
			if strings.Contains(r.Header.Get(name), "eco_") {
				t.Errorf("the origin is sent a token in %s", name)
			}
		}
		fmt.Fprintf(rw, "%s %s", r.Method, r.URL.Path)
	}))
	t.Cleanup(origin.Close)
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)

	get := func(url string) func(*plug) {
		return func(p *plug) {
			p.text(0, `{"url":"`+url+`"}`).call("http_request", w.LocalGet(0), w.I64Const(0)).into(1).output(1)
		}
	}
	imports := []string{
		"input_offset", "input_length", "config_get", "var_get", "var_set", "load_u64", "error_set", "log_info",
		"http_request", "http_status_code", "poll_oneoff",
	}
	sleep := make([]byte, 48)
	binary.LittleEndian.PutUint64(sleep[24:], uint64(time.Minute.Nanoseconds()))
	module := plugin("plug", imports, func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	},
		plugged{ref: "plug:echo.do@1", body: func(p *plug) {
			p.call("output_set", w.Call(p.functions["input_offset"]), w.Call(p.functions["input_length"]))
		}},
		plugged{ref: "plug:config.get@1", body: func(p *plug) {
			p.text(0, "greeting").call("config_get", w.LocalGet(0)).into(1).output(1)
		}},
		plugged{ref: "plug:global.count@1", body: func(p *plug) { // PF-E2
			p.add(w.GlobalGet(p.counter), w.I64Const(1), w.Op(opI64Add), w.GlobalSet(p.counter), w.GlobalGet(p.counter)).into(0).digit(0)
		}},
		plugged{ref: "plug:var.count@1", body: func(p *plug) {
			p.text(0, "n").call("var_get", w.LocalGet(0)).into(1)
			p.call("load_u64", w.LocalGet(1)).add(w.I64Const(1), w.Op(opI64Add)).into(1)
			p.text(0, "n").call("alloc", w.I64Const(8)).into(2)
			p.call("store_u64", w.LocalGet(2), w.LocalGet(1)).call("var_set", w.LocalGet(0), w.LocalGet(2)).digit(1)
		}},
		plugged{ref: "plug:error.make@1", fails: true, body: func(p *plug) { p.text(0, "it went wrong").call("error_set", w.LocalGet(0)) }},
		plugged{ref: "plug:status.make@1", fails: true, body: func(*plug) {}},
		plugged{ref: "plug:line.log@1", body: func(p *plug) { p.text(0, "a line").call("log_info", w.LocalGet(0)) }},
		plugged{ref: "plug:page.get@1", reach: abi.ReachIntegration, body: get(origin.URL + "/page")},
		plugged{ref: "plug:away.get@1", reach: abi.ReachIntegration, body: func(p *plug) {
			get(origin.URL + "/away")(p)
			// 302 is not a digit; the last one of it is
			p.call("http_status_code").add(w.I32Const(300), w.Op(w.OpI32Sub), w.Op(w.OpI64ExtendI32)).into(0).digit(0)
		}},
		plugged{ref: "plug:elsewhere.get@1", reach: abi.ReachIntegration, body: get("https://elsewhere.example/")},
		plugged{ref: "plug:liar.get@1", body: get(origin.URL + "/page")},
		plugged{ref: "plug:spin.do@1", body: func(p *plug) { p.add(w.Loop(w.Br(0))) }},
		plugged{ref: "plug:sleep.do@1", body: func(p *plug) { // PF-D6
			for i, b := range sleep {
				p.add(w.I32Const(int32(256+i)), w.I32Const(int32(b)), w.Store8(0))
			}
			p.call("poll_oneoff", w.I32Const(256), w.I32Const(512), w.I32Const(1), w.I32Const(1024)).add(w.Op(opDrop))
		}},
		plugged{ref: "plug:wild.read@1", body: func(p *plug) {
			p.call("load_u64", w.I64Const(1<<40)).into(0)
		}},
	)
	r := g.Upload(module).Want(201)
	if got := string(r.Body); !strings.Contains(got, "http_request") {
		t.Errorf("the report of admission does not name what is imported: %s", got)
	}
	install := map[string]any{"endpoints": []string{"origin"}, "config": map[string]string{"greeting": "hello"}}
	g.Install("plug", []string{"project", "sandbox"}, install).Want(200)
	sessions := map[string]*servertest.Session{}
	for _, e := range []string{"project", "sandbox"} {
		for _, ref := range refsOf(g, "plug") {
			g.Grant("user:alice", ref, e)
		}
		sessions[e] = g.Open("user:alice", e, nil)
	}

	// What it permits is said in terms of host functions, before anybody installs it (X63).
	doc := permissionsOf(g, "plug", "").Document
	if !slices.Equal(doc.Data["network"], []string{"http_fetch"}) || !slices.Equal(doc.Data["keys"], []string{"kv_delete", "kv_get", "kv_put"}) {
		t.Errorf("the permission document says %v", doc.Data)
	}

	for e, s := range sessions {
		if got := speak(s.Invoke("plug:echo.do@1", "what comes in")); got != "what comes in" {
			t.Errorf("%s: it answers %q", e, got)
		}
		s.Invoke("plug:echo.do@1", map[string]int{"n": 1}).Refused(abi.CodeInputSchema)
		if got := speak(s.Invoke("plug:config.get@1", "")); got != "hello" {
			t.Errorf("%s: its configuration is %q", e, got)
		}
		for range 3 {
			if got := speak(s.Invoke("plug:global.count@1", "")); got != "1" {
				t.Errorf("%s: a global of the caller before is %s", e, got)
			}
		}
		var x struct{ Config []string }
		if s.Explain("plug:config.get@1", "").Want(200).JSON(&x); !slices.Equal(x.Config, []string{"greeting"}) {
			t.Errorf("%s: the explanation names %v", e, x.Config)
		}
		before := speak(s.Invoke("plug:var.count@1", ""))
		for range 2 {
			res := s.Invoke("plug:var.count@1", "")
			if got := speak(res); got[0] != before[0]+1 {
				t.Errorf("%s: the variable was %s and is %s", e, before, got)
			} else {
				before = got
			}
			at := row(g, res)
			if code, made := at.lineCode("kv_put"); !made || code != "" || !strings.Contains(string(at.Raw), `"extism/var/n"`) {
				t.Errorf("%s: the receipt says %s", e, at.Raw)
			}
		}
		problem := s.Invoke("plug:error.make@1", "").Refused(abi.CodeGuestError)
		if !strings.Contains(string(problem.Body), `"it went wrong"`) || !strings.Contains(string(problem.Body), `"PLUGIN_ERROR"`) {
			t.Errorf("%s: its error is %s", e, problem.Body)
		}
		s.Invoke("plug:status.make@1", "").Refused(abi.CodeGuestError)
		logged := s.Invoke("plug:line.log@1", "")
		if got := speak(logged); got != "" || !strings.Contains(string(row(g, logged).Raw), `"logBytes":6`) {
			t.Errorf("%s: what it logged is not on record: %q", e, got)
		}
		// PF-D5, PF-D6: the caller's deadline holds, for what computes and for what sleeps.
		for _, ref := range []string{"plug:spin.do@1", "plug:sleep.do@1"} {
			s.Invoke(ref, "", "Ecotone-Deadline-Ms", "300").Refused(abi.CodeDeadline)
		}
		s.Invoke("plug:wild.read@1", "").Refused(abi.CodeGuestTrap)
		liar := s.Invoke("plug:liar.get@1", "").Refused(abi.CodeReachCeiling)
		if at := recorded(g, auditOf(liar), abi.CodeReachCeiling); at.Decision.Verdict != "allow" {
			t.Errorf("%s: %s", e, at.Raw)
		}
	}
	p := sessions["project"]
	if got := speak(p.Invoke("plug:page.get@1", "")); got != "GET /page" {
		t.Errorf("the page is %q", got)
	}
	if got := speak(p.Invoke("plug:away.get@1", "")); got != "2" { // PF-B1: not followed
		t.Errorf("the redirect is %q", got)
	}
	p.Invoke("plug:elsewhere.get@1", "").Refused(abi.CodeEndpointRefused)
	sessions["sandbox"].Invoke("plug:page.get@1", "").Refused(abi.CodeReachCeiling)

	// Without the endpoint and the configuration, the same plug-in gets at neither.
	g.Install("plug", []string{"project", "sandbox"}, nil).Want(200)
	p.Invoke("plug:page.get@1", "").Refused(abi.CodeEndpointRefused)
	if got := speak(p.Invoke("plug:config.get@1", "")); got != "" {
		t.Errorf("configuration that was taken away is %q", got)
	}
}

// auditOf is the audit id of a problem.
func auditOf(r servertest.Response) string {
	r.T.Helper()
	var p struct {
		AuditID string `json:"auditId"`
	}
	r.JSON(&p)
	return p.AuditID
}

// What is not a plug-in, or not one that this host can run, is refused when it is uploaded, and told what
// it is.
func TestExtismUploads(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	nothing := plugged{ref: "plug:a.do@1", body: func(*plug) {}}
	with := func(change func(*w.Builder), m func(*abi.Manifest)) []byte {
		b := w.New()
		change(b)
		b.Capability("run0")
		d := w.Provide("plug:a.do@1", "run0", abi.ReachOwner)
		manifest := w.Manifest("plug", d)
		manifest.ABI = abi.FaceExtism
		if m != nil {
			m(manifest)
		}
		return b.Memory(1).ExportMemory().Manifest(manifest).Bytes()
	}
	i64 := w.Types(w.I64)
	for name, c := range map[string]struct {
		module []byte
		code   abi.Code
		says   string
	}{
		"both interfaces":   {with(func(b *w.Builder) { b.Host("input") }, nil), abi.CodeFaceMixed, "ecotone_v1"},
		"called native":     {with(func(b *w.Builder) { b.ImportFunc(abi.ExtismModule, "alloc", i64, i64) }, func(m *abi.Manifest) { m.ABI = abi.FaceNative }), abi.CodeFaceMixed, "extism:host/env"},
		"called WASI":       {with(func(b *w.Builder) { b.ImportFunc(abi.ExtismModule, "alloc", i64, i64) }, func(m *abi.Manifest) { m.ABI = abi.FaceWASI }), abi.CodeFaceMixed, "extism:host/env"},
		"foreign functions": {with(func(b *w.Builder) { b.ImportFunc(abi.ExtismUserModule, "mult", i64, i64) }, nil), abi.CodeImportUnknown, "program it was written for"},
		"another plug-in":   {with(func(b *w.Builder) { b.ImportFunc("lib", "capitalize", i64, i64) }, nil), abi.CodeImportUnknown, "lib"},
		"no such function":  {with(func(b *w.Builder) { b.ImportFunc(abi.ExtismModule, "exec", i64, i64) }, nil), abi.CodeImportUnknown, "exec"},
		"another signature": {with(func(b *w.Builder) { b.ImportFunc(abi.ExtismModule, "alloc", w.Types(w.I32), i64) }, nil), abi.CodeImportSignature, "alloc"},
		"above its reach":   {with(func(b *w.Builder) { b.ImportFunc(abi.ExtismModule, "http_request", w.Types(w.I64, w.I64), i64) }, nil), abi.CodeImportAboveReach, "http_request"},
		"arguments":         {with(func(*w.Builder) {}, func(m *abi.Manifest) { m.Provides[0].Arguments = []string{"-v"} }), abi.CodeManifestInvalid, "arguments"},
		"starts and initialises": {func() []byte {
			b := w.New()
			for _, name := range []string{"_start", "hs_init"} {
				b.ExportFunc(name, b.Func(nil, nil, nil))
			}
			d := w.Provide("plug:a.do@1", "_start", abi.ReachOwner)
			m := w.Manifest("plug", d)
			m.ABI = abi.FaceExtism
			return b.Memory(1).ExportMemory().Manifest(m).Bytes()
		}(), abi.CodeStartRefused, "hs_init"},
	} {
		if r := g.Upload(c.module).Refused(abi.CodeModuleRefused); !strings.Contains(string(r.Body), `"code":"`+string(c.code)+`"`) || !strings.Contains(string(r.Body), c.says) {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	g.Upload(plugin("plug", nil, nil, nothing)).Want(201)
}

// A plug-in that was built as a program serves a capability by its start, has no state of the one before
// it, and may leave with 0.
func TestExtismProgram(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	leave := func(code int32) func(*plug) {
		return func(p *plug) {
			p.add(w.GlobalGet(p.counter), w.I64Const(1), w.Op(opI64Add), w.GlobalSet(p.counter), w.GlobalGet(p.counter)).into(0).digit(0)
			p.call("proc_exit", w.I32Const(code))
		}
	}
	for code, name := range []string{"leaves", "fails"} {
		admit(g, name, plugin(name, []string{"proc_exit"}, nil, plugged{ref: name + ":a.do@1", start: true, body: leave(int32(code))}), []string{"sandbox"}, nil)
	}
	s := g.Open("user:alice", "sandbox", nil)
	for range 3 {
		if got := speak(s.Invoke("leaves:a.do@1", "")); got != "1" {
			t.Errorf("it answers %q", got)
		}
		s.Invoke("fails:a.do@1", "").Refused(abi.CodeGuestExit)
	}
}

package servertest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// A limit bites in exactly one of these ways. The tests of this file go through the tables;
// TestLimitsAreAllTested holds the tables to abi.LimitTable().

// limitsAtUpload are shown by a hostile module that is one thing too many.
var limitsAtUpload = map[abi.Limit]string{
	abi.LimitBodyBytes:       "gen/gen_body_4mb",
	abi.LimitLocals:          "gen/gen_locals_4g",
	abi.LimitNesting:         "gen/gen_blocks_nested_20k",
	abi.LimitBrTable:         "gen/gen_br_table_100k",
	abi.LimitBlocks:          "gen/gen_ifelse_9k",
	abi.LimitFunctions:       "gen/gen_funcs_100k",
	abi.LimitTypes:           "gen/gen_types_20k",
	abi.LimitImports:         "gen/gen_imports_1000",
	abi.LimitExports:         "gen/gen_exports_100k",
	abi.LimitGlobals:         "gen/gen_globals_1m",
	abi.LimitDataSegments:    "gen/gen_data_200k",
	abi.LimitElementSegments: "gen/gen_elements_100k",
	abi.LimitCustomSections:  "gen/gen_custom_100k",
	abi.LimitNameBytes:       "gen/gen_export_name_1mb",
	abi.LimitTables:          "gen/gen_tables_1000x100k",
	abi.LimitTableEntries:    "table_sum",
}

// limitCase is a limit of the environment, lowered with PUT /v1/environments/{slug}, and a script
// that goes past it.
type limitCase struct {
	to     int64
	script []act
	input  string // of the invocation; "" is {}
	// How it ends: with a code, or with these error numbers and, in the receipt, the limit's code.
	code  abi.Code
	want  []abi.Errno
	quiet bool // the call past the limit has no line in the receipt, or the limit has no code
	fits  bool // with the limit as it is by default, the script ends well
	// And what must be true of the row's end.
	ended func(map[string]any) bool
}

const (
	slowURL = "ORIGIN/slow"
	bigURL  = "ORIGIN/big"
	getURL  = "ORIGIN/"
)

func fetching(url string) act { return act{"http_fetch", `{"method":"GET","url":"` + url + `"}`, ""} }

func times(n int, a act) []act { return slices.Repeat([]act{a}, n) }

// hundred is one hundred bytes of JSON text.
var hundred = `"` + strings.Repeat("x", 98) + `"`

var limitsOfEnvironments = map[abi.Limit]limitCase{
	abi.LimitInputBytes:  {to: 50, script: []act{{"time_now"}}, input: hundred, code: abi.CodeInputLimit},
	abi.LimitOutputBytes: {to: 50, script: []act{{"input"}, {"answer"}}, input: hundred, code: abi.CodeOutputLimit},
	abi.LimitLogLineBytes: {to: 16, script: []act{{"log", 1, hundred}}, want: []abi.Errno{0}, quiet: true, ended: func(e map[string]any) bool {
		return e["logBytes"] == 16.0
	}},
	abi.LimitLogBytes: {to: 300, script: times(9, act{"log", 1, hundred}), want: make([]abi.Errno, 9), quiet: true, ended: func(e map[string]any) bool {
		return e["logBytes"].(float64) >= 200 && e["logBytes"].(float64) < 300
	}},
	abi.LimitHostCalls:    {to: 3, script: times(5, act{"kv_get", "none"}), want: []abi.Errno{abi.ENOENT, abi.ENOENT, abi.ENOENT, abi.EQUOTA, abi.EQUOTA}},
	abi.LimitRandomBytes:  {to: 32, script: times(3, act{"random", 8192, 16}), want: []abi.Errno{0, 0, abi.EQUOTA}, quiet: true},
	abi.LimitChildDepth:   {to: 1, script: []act{{"capability_invoke", "test:limits.middle@1", "{}"}, {"answer"}}, want: []abi.Errno{abi.EQUOTA}, quiet: true},
	abi.LimitChildren:     {to: 2, script: times(3, act{"capability_invoke", "test:limits.leaf@1", "{}"}), want: []abi.Errno{0, 0, abi.EQUOTA}},
	abi.LimitHTTPWall:     {to: 200, script: []act{fetching(slowURL)}, want: []abi.Errno{abi.ETIMEOUT}},
	abi.LimitHTTPBytes:    {to: 100, script: []act{fetching(getURL), fetching(bigURL)}, want: []abi.Errno{0, abi.ETOOBIG}},
	abi.LimitHTTPRequests: {to: 2, script: times(3, fetching(getURL)), want: []abi.Errno{0, 0, abi.EQUOTA}},
	abi.LimitWorkspaceBytes: {
		to: 150, script: []act{{"file_create", "a", hundred}, {"file_create", "b", hundred}, {"file_remove", "a"}, {"file_create", "b", hundred}},
		want: []abi.Errno{0, abi.EQUOTA, 0, 0},
	},
	abi.LimitWorkspaceEntries: {
		to: 2, script: []act{{"file_create", "a", ""}, {"file_create", "b/c", ""}, {"file_create", "d", ""}, {"file_create", "e", ""}},
		want: []abi.Errno{0, abi.EQUOTA, 0, abi.EQUOTA},
	},
	abi.LimitFileBytes: {
		to: 99, script: []act{{"file_create", "a", hundred}, {"file_create", "a", "short"}, {"file_write", "a", hundred}, {"file_edit", "a", "short", hundred, 0}},
		want: []abi.Errno{abi.ETOOBIG, 0, abi.ETOOBIG, abi.ETOOBIG},
	},
	abi.LimitKeys: {
		to: 2, script: []act{{"kv_put", "a", ""}, {"kv_put", "b", ""}, {"kv_put", "c", ""}, {"kv_put", "b", "again"}, {"kv_delete", "a"}, {"kv_put", "c", ""}, {"kv_delete", "b"}, {"kv_delete", "c"}},
		want: []abi.Errno{0, 0, abi.EQUOTA, 0, 0, 0, 0, 0},
	},
	abi.LimitKeyBytes:   {to: 8, script: []act{{"kv_put", "ninebytes", ""}, {"kv_get", "ninebytes"}, {"kv_put", "eight888", ""}, {"kv_delete", "eight888"}}, want: []abi.Errno{abi.EINVAL, abi.EINVAL, 0, 0}},
	abi.LimitValueBytes: {to: 99, script: []act{{"kv_put", "k", hundred}, {"kv_get", "k"}}, want: []abi.Errno{abi.ETOOBIG, abi.ENOENT}},
	abi.LimitKVBytes: {
		to: 250, script: []act{{"kv_put", "a", hundred}, {"kv_put", "b", hundred}, {"kv_put", "c", hundred}, {"kv_delete", "a"}, {"kv_delete", "b"}},
		want: []abi.Errno{0, 0, abi.EQUOTA, 0, 0},
	},
	abi.LimitWall:        {to: 300, script: []act{{"spin"}}, code: abi.CodeDeadline},
	abi.LimitFuel:        {to: 1_000_000, script: []act{{"spin"}}, code: abi.CodeFuelExhausted},
	abi.LimitStackBytes:  {to: 100_000, script: []act{{"recurse", 10_000}}, code: abi.CodeStackLimit, fits: true},
	abi.LimitMemoryBytes: {to: 1<<16 - 1, script: []act{{"time_now"}}, code: abi.CodeMemoryLimit},
}

// limitsOfTheServer have a test of their own each.
var limitsOfTheServer = map[abi.Limit]func(*testing.T){
	abi.LimitModuleBytes:      limitModuleBytes,
	abi.LimitUploadBytes:      limitUploadBytes,
	abi.LimitMemories:         limitMemories,
	abi.LimitCompileCPU:       limitCompile("compileCpu", 3000, conditionals),
	abi.LimitCompileWall:      limitCompile("compileWall", 15_000, conditionals),
	abi.LimitCompileMemory:    limitCompile("compileMemory", 2<<30, tables),
	abi.LimitRunning:          limitRunning,
	abi.LimitWaiting:          limitRunning,
	abi.LimitSessions:         limitSessions,
	abi.LimitUploads:          limitUploads,
	abi.LimitPendingApprovals: limitPendingApprovals,
	abi.LimitDiskReserve:      limitDiskReserve,
}

// PF-D1: no limit is accepted that nothing shows to bite.
func TestLimitsAreAllTested(t *testing.T) {
	for _, row := range abi.LimitTable() {
		_, atUpload := limitsAtUpload[row.Limit]
		_, ofEnvironment := limitsOfEnvironments[row.Limit]
		_, ofServer := limitsOfTheServer[row.Limit]
		if n := count(atUpload, ofEnvironment, ofServer); n != 1 {
			t.Errorf("the limit %s is in %d tables", row.Name, n)
		}
		if ofEnvironment != (row.Scope == abi.ScopeEnvironment) {
			t.Errorf("the limit %s has the scope %s", row.Name, row.Scope)
		}
	}
}

func count(facts ...bool) (n int) {
	for _, f := range facts {
		if f {
			n++
		}
	}
	return n
}

// PF-D1: each structural limit refuses an upload, by name and value.
func TestLimitsAtUpload(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	for limit, name := range limitsAtUpload {
		info := limit.Info()
		t.Run(info.Name, func(t *testing.T) {
			r := g.Upload(hostile.Named(name).Bytes()).Refused(abi.CodeModuleRefused)
			for _, p := range problems(t, r) {
				if p.Code == info.Code && strings.Contains(p.Message, "limit "+info.Name+" is") {
					return
				}
			}
			t.Errorf("the limit is not named: %.500s", r.Body)
		})
	}
}

// PF-D1, M17: each limit of an environment, lowered, bites with its code or error number; the
// invocation before and after work, under the limit and with it put back.
func TestLimitsOfEnvironments(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Second):
			}
		case "/big":
			_, _ = io.WriteString(rw, strings.Repeat("x", 1000))
		default:
			_, _ = io.WriteString(rw, "ok")
		}
	}))
	defer origin.Close()
	all := scripts{"leaf": {{"time_now"}}, "middle": {{"capability_invoke", "test:limits.leaf@1", "{}"}}, "cycle": {{"capability_invoke", "test:limits.cycle@1", "{}"}}}
	for limit, c := range limitsOfEnvironments {
		all[export(limit)] = at(origin.URL, c.script)
	}
	m := w.Manifest("limits")
	m.Requires.Capabilities = []abi.CapabilityRef{"test:limits.leaf@1", "test:limits.middle@1", "test:limits.cycle@1"}
	m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	allowOrigin(g, origin.URL)
	module := scripted(m, all)
	admitAll(t, g, module, "project", map[string]any{"calls": m.Requires.Capabilities, "endpoints": []string{"origin"}})
	ok := func(t *testing.T, s *servertest.Session) {
		t.Helper()
		if got := errnosOf(s.Invoke("test:limits.leaf@1", map[string]int{})); !slices.Equal(got, []abi.Errno{0}) {
			t.Errorf("a decent invocation: %v", got)
		}
	}
	for limit, c := range limitsOfEnvironments {
		info := limit.Info()
		t.Run(info.Name, func(t *testing.T) {
			s := g.Open("user:alice", "project", map[string]any{"files": true})
			ok(t, s)
			if c.fits {
				s.Invoke("test:limits."+export(limit)+"@1", map[string]int{}).Want(200)
			}
			t.Run("lowered", func(t *testing.T) {
				lowerLimits(t, g, "project", map[string]int64{info.Name: c.to})
				c.check(t, g, s, info)
				if limit != abi.LimitMemoryBytes {
					ok(t, s)
				}
			})
			ok(t, s)
		})
	}
	// The rule beside the limits of children: no capability is its own ancestor.
	s := g.Open("user:alice", "project", nil)
	if got := errnosOf(s.Invoke("test:limits.cycle@1", map[string]int{})); !slices.Equal(got, []abi.Errno{abi.EDENIED}) {
		t.Errorf("a cycle: %v", got)
	}
}

// export is the capability that goes past a limit.
func export(l abi.Limit) string { return "past-" + strings.ToLower(l.Info().Name) }

// at puts the origin's address into the texts of a script.
func at(origin string, script []act) []act {
	var out []act
	for _, a := range script {
		a = slices.Clone(a)
		for i, v := range a {
			if s, isText := v.(string); isText {
				a[i] = strings.ReplaceAll(s, "ORIGIN", origin)
			}
		}
		out = append(out, a)
	}
	return out
}

// allowOrigin names a loopback origin as the endpoint "origin".
func allowOrigin(g *servertest.Gateway, url string) {
	g.T.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	g.Control("PUT", "/v1/endpoints/origin", []byte(`{"rule":{"scheme":"http","host":"`+host+`","port":`+port+`,"methods":["GET"],"path":"/**"},"loopback":true,"clearance":"regulated","label":"public"}`),
		"If-None-Match", "*").Want(200)
}

func (c limitCase) check(t *testing.T, g *servertest.Gateway, s *servertest.Session, info abi.LimitInfo) {
	t.Helper()
	input := c.input
	if input == "" {
		input = "{}"
	}
	r := s.Invoke("test:limits."+export(info.Limit)+"@1", []byte(input))
	if c.code != "" {
		if c.code != info.Code {
			t.Errorf("the table says %s", info.Code)
		}
		r.Refused(c.code)
		wellFormed(t, r)
		return
	}
	if got := errnosOf(r); !slices.Equal(got, c.want) {
		t.Errorf("error numbers %v, want %v", got, c.want)
	}
	ended := g.Row(r.Header.Get("Ecotone-Invocation"))["ended"].(map[string]any)
	if c.ended != nil && !c.ended(ended) {
		t.Errorf("the row says %v", ended)
	}
	if c.quiet {
		return
	}
	for _, line := range ended["lines"].([]any) {
		if line.(map[string]any)["code"] == string(info.Code) {
			return
		}
	}
	t.Errorf("no %s in the receipt: %v", info.Code, ended["lines"])
}

// PF-D1: each limit of the server.
func TestLimitsOfTheServer(t *testing.T) {
	t.Parallel()
	for limit, test := range limitsOfTheServer {
		if limit != abi.LimitWaiting { // shown together with running
			t.Run(limit.Info().Name, test)
		}
	}
}

func limited(t *testing.T, set map[string]int64) *servertest.Gateway {
	return servertest.Start(t, func(o *server.Options) {
		for name, v := range set {
			if err := o.Limits.Set(name, v); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// padded is an echo of about n bytes.
func padded(n int) []byte {
	b := w.Echo(w.Manifest("padded", w.Provide("test:padded.do@1", "run", abi.ReachOwner)))
	return w.Cat(b, w.Section(w.SectionCustom, w.Cat(w.Name("padding"), make([]byte, n))))
}

func limitModuleBytes(t *testing.T) {
	g := limited(t, map[string]int64{"moduleBytes": 4 << 10})
	r := g.Upload(padded(8 << 10)).Refused(abi.CodeModuleRefused)
	if p := problems(t, r); len(p) != 1 || p[0].Code != abi.CodePayloadTooLarge {
		t.Errorf("%s", r.Body)
	}
	g.Upload(padded(1 << 10)).Want(201)
}

func limitUploadBytes(t *testing.T) {
	g := limited(t, map[string]int64{"uploadBytes": 4 << 10})
	g.Upload(padded(8 << 10)).Refused(abi.CodePayloadTooLarge)
	g.Upload(padded(1 << 10)).Want(201)
}

// A second memory is a proposal that is not accepted, and the limit says so.
func limitMemories(t *testing.T) {
	g := servertest.Start(t)
	r := g.Upload(hostile.Named("feat/multi_memory").Bytes()).Refused(abi.CodeModuleRefused)
	if p := problems(t, r); len(p) == 0 || p[0].Code != abi.LimitMemories.Info().Code {
		t.Errorf("%s", r.Body)
	}
}

// conditionals takes the engine a minute, and tables takes it memory.
func conditionals(b *w.Builder) {
	body := bytes.Repeat(w.Cat(w.I32Const(0), w.Op(0x04, w.BlockVoid, w.OpElse, w.OpEnd)), 8000)
	for range 60 {
		b.Func(nil, nil, nil, body)
	}
}

func tables(b *w.Builder) {
	body := bytes.Repeat(w.Block(w.I32Const(0), w.BrTable(0, make([]uint32, 8191)...)), 31)
	for range 30 {
		b.Func(nil, nil, nil, body)
	}
}

// limitCompile uploads a sound module that is heavy in the way that the limit bounds.
func limitCompile(name string, to int64, weigh func(*w.Builder)) func(*testing.T) {
	return func(t *testing.T) { // the module is made here: compile children run this program's initialisers, too
		heavy := w.New()
		weigh(heavy)
		heavy.Capability("run")
		heavy.Memory(1).ExportMemory().Manifest(w.Manifest("heavy", w.Provide("test:heavy.do@1", "run", abi.ReachOwner)))
		g := limited(t, map[string]int64{name: to})
		r := uploadAgain(g, heavy.Bytes())
		if r.Refused(abi.CodeModuleRefused); len(problems(t, r)) == 0 || problems(t, r)[0].Code != abi.CodeCompileLimit {
			t.Errorf("%.500s", r.Body)
		}
		for _, dir := range []string{"modules", "cache"} {
			if files := filesBelow(t, filepath.Join(g.Dir, dir)); len(files) != 0 {
				t.Errorf("%s keeps %v", dir, files)
			}
		}
		if r := uploadAgain(g, padded(1)); r.Status != 201 {
			t.Errorf("a small module: %d %s", r.Status, r.Body)
			g.Stop()
			t.Log(g.Log.String())
		}
	}
}

// uploadAgain uploads until the machine had time for it: under a limit of wall time, a child that was
// starved says nothing about its module.
func uploadAgain(g *servertest.Gateway, module []byte) servertest.Response {
	for until := time.Now().Add(2 * time.Minute); ; {
		r := g.Upload(module)
		if r.Code() != abi.CodeImageNotReady || time.Now().After(until) {
			return r
		}
	}
}

// PF-D10: with every place to run and to wait taken, one more is refused at once, and the other
// listeners answer.
func limitRunning(t *testing.T) {
	g := limited(t, map[string]int64{"running": 1, "waiting": 1})
	admitAll(t, g, scripted(w.Manifest("busy"), scripts{"spin": {{"spin"}}, "leaf": {{"time_now"}}}), "sandbox", nil)
	withoutEnd(t, g, "sandbox")
	s := g.Open("user:alice", "sandbox", nil)
	codes := map[abi.Code]int{}
	for _, r := range together(6, func(int) servertest.Response {
		return s.Invoke("test:busy.spin@1", map[string]int{}, "Ecotone-Deadline-Ms", "3000")
	}) {
		codes[r.Refused(r.Code()).Code()]++
	}
	if over, ended := codes[abi.CodeOverloaded], codes[abi.CodeDeadline]; over == 0 || ended < 2 || over+ended != 6 {
		t.Errorf("%v", codes)
	}
	g.Do("GET", g.Ops+"/livez", "", nil).Want(200)
	errnosOf(s.Invoke("test:busy.leaf@1", map[string]int{}))
}

// The quota is of versions, over all biomes of one organisation; what is there already takes no more, and
// what is refused is not compiled.
func limitUploads(t *testing.T) {
	g := limited(t, map[string]int64{"uploads": 2})
	version := func(biome, key string) []byte {
		return script(biome, nil, action{ref: biome + ":a.do@1", reach: abi.ReachOwner, steps: []step{do("kv_get", key)}})
	}
	g.Upload(version("one", "1")).Want(201)
	g.Upload(version("two", "1")).Want(201)
	kept := filesBelow(t, g.Dir+"/cache")
	g.Upload(version("one", "2")).Refused(abi.CodeQuotaExceeded)
	g.Upload(version("three", "1")).Refused(abi.CodeQuotaExceeded)
	g.Upload(version("one", "1")).Want(200)
	if got := filesBelow(t, g.Dir+"/cache"); len(got) != len(kept) {
		t.Errorf("what was refused was compiled: %v, before %v", got, kept)
	}
	g.Control("GET", "/v1/biomes/three", nil).Refused(abi.CodeNotFound)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	r := g.Control("POST", "/v1/biomes?org=acme", version("four", "1"), "Content-Type", "application/wasm")
	r.Want(201)
}

func limitSessions(t *testing.T) {
	g := limited(t, map[string]int64{"sessions": 2})
	g.Open("user:alice", "sandbox", nil)
	last := g.Open("user:alice", "sandbox", nil)
	third := map[string]any{"subject": "user:alice", "environment": "environment:sandbox"}
	g.Control("POST", "/v1/sessions", third).Refused(abi.CodeQuotaExceeded)
	g.Control("DELETE", "/v1/sessions/"+last.ID, nil).Want(200)
	g.Control("POST", "/v1/sessions", third).Want(201)
}

// PF-G5: without room for the audit the server is not ready and nothing runs or changes; what is
// there stays, and works again once there is room.
func limitDiskReserve(t *testing.T) {
	g, s := echoing(t)
	g.Stop()
	full := servertest.Start(t, servertest.In(g.Dir), func(o *server.Options) { _ = o.Limits.Set("diskReserve", abi.OperatorMax) })
	there := func(g *servertest.Gateway) *servertest.Session { return &servertest.Session{G: g, Token: s.Token} }
	full.Do("GET", full.Ops+"/readyz", "", nil).Want(503)
	there(full).Invoke("test:echo.do@1", map[string]int{"n": 1}).Refused(abi.CodeAuditUnavailable)
	there(full).Invoke("test:echo.do@1", []byte("{")).Refused(abi.CodeAuditUnavailable)
	full.Control("POST", "/v1/sessions", map[string]any{"subject": "user:alice", "environment": "environment:sandbox"}).Refused(abi.CodeAuditUnavailable)
	if n := full.Server.Started(); n != 0 {
		t.Errorf("%d guests were started", n)
	}
	full.Stop()
	again := servertest.Start(t, servertest.In(g.Dir))
	again.Do("GET", again.Ops+"/readyz", "", nil).Want(200)
	there(again).Invoke("test:echo.do@1", map[string]int{"n": 1}).Want(200)
}

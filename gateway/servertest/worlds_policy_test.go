package servertest_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/version"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// secretly is everything of a world that a low caller is not to know. Worlds that differ in nothing else are
// the same world to it.
type secretly struct {
	File   string // bytes of a file in the low session's own workspace, put there behind the gateway's back
	Plan   string // bytes of another in a directory that was put there as well; "" is that there is none
	Answer string // of an endpoint whose label is above the session's clearance
	Value  string // of a secret that the low caller's biome may use and never sees
	Key    int    // which of the two values a key has in a space with a higher floor; 0 is that there is none
	Mark   int    // what a key of the callee holds: whether its answer, which is withheld, is a failure
	High   []int  // what a session that has read the file goes on to do: anything at all
	Rival  []int  // how another organisation's policy was changed
	Asked  string // the input of what a high session asks a person for; "" is that it asks for nothing
	Word   string // what the person says of it, if anything
}

// plain is the world that others are compared with.
var plain = secretly{File: "attack at dawn", Answer: `"yes"`, Value: "identity-of-this-world-0001", Key: 1, Mark: 1, Asked: "may we attack?"}

// differing are worlds that differ from it in one thing each.
var differing = map[string]func(*secretly){
	"a file's bytes":             func(s *secretly) { s.File = strings.Repeat("attack or not\n", 5000) },
	"an empty file":              func(s *secretly) { s.File = "" },
	"a file's existence":         func(s *secretly) { s.Plan = "attack at dawn" },
	"an endpoint's answer":       func(s *secretly) { s.Answer = `"` + strings.Repeat("no", 1000) + `"` },
	"an endpoint's failure":      func(s *secretly) { s.Answer = "" },
	"a secret's value":           func(s *secretly) { s.Value = "another-and-a-longer-identity-of-that-world" },
	"a key's value":              func(s *secretly) { s.Key = 2 },
	"a key's existence":          func(s *secretly) { s.Key = 0 },
	"a child's failure":          func(s *secretly) { s.Mark = 0 },
	"what a high session tries":  func(s *secretly) { s.High = everyHigh() },
	"another's policy":           func(s *secretly) { s.Rival = []int{0, 1, 2, 3} },
	"other changes, and as many": func(s *secretly) { s.Rival = []int{1} },
	"what a person is asked":     func(s *secretly) { s.Asked = strings.Repeat("may we not attack? ", 100) },
	"that nobody is asked":       func(s *secretly) { s.Asked = "" },
	"that a person approves":     func(s *secretly) { s.Word = "approve" },
	"that a person rejects":      func(s *secretly) { s.Word = "reject" },
}

// pair is two gateways and the origin that both call; it answers as the world that is at its turn.
type pair struct {
	of     [2]*servertest.Gateway
	people map[*servertest.Gateway]string              // tokens of who approves
	roots  map[*servertest.Gateway]*servertest.Gateway // of those that are an organisation's: the whole one
	origin *httptest.Server
	turn   atomic.Pointer[secretly]
	made   int // worlds, each in a space and with sessions of its own
}

func newPair(t *testing.T) *pair {
	p := &pair{people: map[*servertest.Gateway]string{}, roots: map[*servertest.Gateway]*servertest.Gateway{}}
	p.turn.Store(&plain)
	p.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/high":
			if p.turn.Load().Answer == "" {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = w.Write([]byte(p.turn.Load().Answer))
		case "/echo":
			_, _ = w.Write([]byte(r.Header.Get("Authorization")))
		default:
			_, _ = w.Write([]byte(`"low"`))
		}
	}))
	t.Cleanup(p.origin.Close)
	for i := range p.of {
		p.of[i] = servertest.Start(t, func(o *server.Options) { o.EgressLoopback, o.Durability = true, audit.DurabilityProcess })
		p.of[i].Control("POST", "/v1/orgs", map[string]string{"id": "rival"}).Want(201)
		p.seed(p.of[i])
	}
	return p
}

// fresh is a gateway as the administrator of a new organisation has it, with all that is not secret in it.
func (p *pair) fresh(root *servertest.Gateway) *servertest.Gateway {
	root.T.Helper()
	p.made++
	org := fmt.Sprintf("org-%05d", p.made) // of one length
	root.Control("POST", "/v1/orgs", map[string]string{"id": org}).Want(201)
	var made struct{ Token string }
	root.Control("POST", "/v1/tokens?org="+org, map[string]string{"principal": "admin", "role": "org-admin", "clearance": "regulated"}).Want(201).JSON(&made)
	g := *root
	g.Operator = made.Token
	p.roots[&g] = root
	p.seed(&g)
	return &g
}

// world makes a new space with what is secret in it and returns all that a low caller can find out there.
func (p *pair) world(t testing.TB, g *servertest.Gateway, secret *secretly, script []int) []string {
	t.Helper()
	p.turn.Store(secret)
	p.made++
	space := fmt.Sprintf("world-%05d", p.made) // of one length
	careful := space + "-careful"
	g.Control("POST", "/v1/spaces", map[string]any{"id": space, "kind": "project", "parent": "default"}).Want(201)
	g.Control("POST", "/v1/spaces", map[string]any{"id": careful, "kind": "project", "parent": space, "floor": "regulated"}).Want(201)
	p.putToken(g, secret.Value)
	open := func(more map[string]any) *servertest.Session {
		if more["space"] == nil {
			more["space"] = space
		}
		return g.Open("user:alice", "project", more)
	}
	low, high := open(map[string]any{"files": true, "clearance": "internal"}), open(map[string]any{"files": true})
	for _, s := range []*servertest.Session{low, high} {
		s.Invoke("low:note.make@1", none).Want(200)
		plant(t, g, s, secret)
	}
	if secret.Key > 0 {
		open(map[string]any{"space": careful}).Invoke(fmt.Sprintf("low:key.put%d@1", secret.Key), none).Want(200)
	}
	if secret.Mark > 0 {
		open(map[string]any{}).Invoke("callee:mark.put@1", none).Want(200)
	}
	hidden := high.Invoke("high:file.read@1", none).Want(200).Header.Get("Ecotone-Invocation")
	for _, i := range secret.High {
		high.Invoke(highRef(i), none)
	}
	asked := p.ask(g, high, secret)
	for _, i := range secret.Rival {
		rivalChanges[i](cmp.Or(p.roots[g], g), space)
	}
	c := &lowCaller{g: g, s: low, hidden: hidden, asked: asked, names: map[string]string{space: "SPACE"}, before: counters(g)}
	for _, i := range script {
		c.do(lowCalls[i])
	}
	c.metrics()
	return c.out
}

// ask has a high session ask a person for something, and the person say what it says. It returns the id, which is
// nobody's when nothing is asked.
func (p *pair) ask(g *servertest.Gateway, high *servertest.Session, secret *secretly) string {
	g.T.Helper()
	if secret.Asked == "" {
		return "01ARZ3NDEKTSV4RRFFQ69G5FAW"
	}
	id := high.Invoke("high:word.ask@1", map[string]string{"text": secret.Asked}).Waits()
	if secret.Word != "" {
		g.Do("POST", g.Admin+"/v1/approvals/"+id+"/"+secret.Word, p.people[g], map[string]string{}).Want(200)
		settled(high, id)
	}
	return id
}

// plant puts files into a workspace behind the gateway's back, which makes them regulated.
func plant(t testing.TB, g *servertest.Gateway, s *servertest.Session, secret *secretly) {
	t.Helper()
	room := filepath.Join(g.Dir, "workspaces", s.Workspace)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(room, "in.txt"), []byte(secret.File), 0o600))
	must(os.Mkdir(filepath.Join(room, "vault"), 0o700))
	if secret.Plan != "" {
		must(os.WriteFile(filepath.Join(room, "vault", "plan"), []byte(secret.Plan), 0o600))
	}
}

// rivalChanges are changes of another organisation's policy, and one of the whole server's.
var rivalChanges = []func(g *servertest.Gateway, unique string){
	func(g *servertest.Gateway, unique string) {
		g.Control("POST", "/v1/orgs", map[string]string{"id": "friend-of-" + unique}).Want(201)
	},
	func(g *servertest.Gateway, unique string) {
		g.Control("POST", "/v1/spaces?org=rival", map[string]any{"id": unique, "kind": "project", "parent": "default", "floor": "secret"}).Want(201)
	},
	func(g *servertest.Gateway, unique string) {
		g.Control("PUT", "/v1/endpoints/"+unique+"?org=rival", map[string]any{
			"rule":      map[string]any{"scheme": "https", "host": "rival.example", "methods": []string{"GET"}, "path": "/**"},
			"clearance": "public", "label": "secret",
		}, "If-None-Match", "*").Want(200)
	},
	func(g *servertest.Gateway, unique string) {
		g.Control("POST", "/v1/tokens?org=rival", map[string]any{"principal": unique, "role": "auditor"}).Want(201)
	},
}

// lowCaller runs a script and writes down everything it is told.
type lowCaller struct {
	g      *servertest.Gateway
	s      *servertest.Session
	last   string // its last invocation
	hidden string // another session's
	asked  string // another session's, for which a person was asked
	names  map[string]string
	before map[string]string
	out    []string
}

// What differs between two runs of one world: tokens and keyed digests, which are random, are named in the
// order in which they appear; times are cut out.
var (
	randomWord = regexp.MustCompile(`\b[0-9A-Z]{26}\b|world-\d+|org-\d+|hmac-sha256:[0-9a-f]{64}`)
	momentWord = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"|"durationMs":\d+`)
)

func (c *lowCaller) note(what string, r servertest.Response) {
	head := []string{}
	timeless := momentWord.ReplaceAllString(string(r.Body), "MOMENT")
	for name, values := range r.Header {
		if name == "Date" || (name == "Content-Length" && timeless != string(r.Body)) { // times vary in length
			continue
		}
		head = append(head, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(head)
	text := fmt.Sprintf("%s\n%d %s\n%s", what, r.Status, strings.Join(head, " | "), timeless)
	c.out = append(c.out, randomWord.ReplaceAllStringFunc(text, func(w string) string {
		if c.names[w] == "" {
			c.names[w] = fmt.Sprintf("WORD%d", len(c.names))
		}
		return c.names[w]
	}))
}

func (c *lowCaller) do(call lowCall) {
	r := c.g.Do(call.method, c.g.Invoke+c.filled(call.path), c.s.Token, call.input, c.fill(call.header)...)
	c.note(call.method+" "+call.path, r)
	if id := r.Header.Get("Ecotone-Invocation"); id != "" && strings.HasPrefix(call.path, "/v1/invoke/") {
		c.last = id
		c.note("its row", c.g.Do("GET", c.g.Invoke+"/v1/invocations/"+id, c.s.Token, nil))
	}
}

// filled is a text with the ids that the caller knows.
func (c *lowCaller) filled(text string) string {
	return strings.NewReplacer("{last}", c.last, "{hidden}", c.hidden, "{asked}", c.asked).Replace(text)
}

func (c *lowCaller) fill(header []string) []string {
	out := make([]string, len(header))
	for i, h := range header {
		out[i] = c.filled(h)
	}
	return out
}

// chance is what time, memory and the scheduler decide of what is measured.
var chance = regexp.MustCompile(`_seconds_(?:sum|bucket\{.*)|_seconds_sum\{|_bytes$|_bytes_total$|^ecotone_pool_|^ecotone_images_|^ecotone_fuel_|^ecotone_audit_entries_`)

// counters are the server's metrics of itself by name, without those that are not the same twice.
func counters(g *servertest.Gateway) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(g.Do("GET", g.Ops+"/metrics", "", nil).Want(200).Body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "ecotone_") && !chance.MatchString(name) {
			out[name] = value
		}
	}
	return out
}

// metrics notes by how much the caller's doings moved the server's counters.
func (c *lowCaller) metrics() {
	for name, now := range counters(c.g) {
		var a, b float64
		_, _ = fmt.Sscan(c.before[name], &a)
		_, _ = fmt.Sscan(now, &b)
		c.out = append(c.out, fmt.Sprintf("metric %s moved by %g", name, b-a))
	}
	slices.Sort(c.out[len(c.out)-len(c.before):])
}

// S3, S5, S6: worlds that differ in one secret thing, and a low caller that tries everything: the whole
// transcript is the same, byte for byte.
func TestWorlds(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	want := p.world(t, p.of[0], &plain, everything())
	for _, name := range slices.Sorted(maps.Keys(differing)) {
		other := plain
		differing[name](&other)
		if diff := gocmp.Diff(want, p.world(t, p.of[1], &other, everything())); diff != "" {
			t.Errorf("a low caller sees %s:\n%s", name, diff)
		}
	}
	// The script is not one of refusals only, and what is secret is in none of them.
	text := strings.Join(want, "\n")
	for _, said := range []string{
		"\n\"low\"", `"code":"CLASSIFICATION_FLOW"`, `"code":"MISSING_GRANT"`, `"name":"note"`, `"function":"file_write","target":"note","bytesIn"`,
		`"code":"SECRET_ECHOED"`, `"verdict":"deny"`, "metric ecotone_guest_starts_total moved by",
	} {
		if !strings.Contains(text, said) {
			t.Errorf("nothing like %s in\n%s", said, text)
		}
	}
	for _, secret := range []string{plain.File, plain.Value, plain.Answer, plain.Asked} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the transcript", secret)
		}
	}
}

// worldDraws is how many pairs of worlds the property tries; shrinking a failure takes more of them.
const worldDraws = 50

// S6: what two servers counted of themselves is the same, not only by how much the low caller moved it, when what
// differs between them is the contents of everything secret at once.
func TestWorldsCountTheSame(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	other := plain
	for _, name := range []string{"a file's bytes", "an endpoint's answer", "a secret's value", "a key's value", "what a person is asked"} {
		differing[name](&other)
	}
	var counted [2]map[string]string
	for i, world := range []*secretly{&plain, &other} {
		p.world(t, p.of[i], world, everything())
		counted[i] = counters(p.of[i])
		maps.DeleteFunc(counted[i], func(name, _ string) bool { // the machine's doing, not the server's
			return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || strings.Contains(name, "_seconds") || strings.Contains(name, "_bytes")
		})
	}
	if diff := gocmp.Diff(counted[0], counted[1]); diff != "" || len(counted[0]) < 3 {
		t.Errorf("the servers count %v:\n%s", counted[0], diff)
	}
}

// freshDraws is how many pairs of organisations the property tries.
const freshDraws = 4

// S3, S5, S6, X22: the same for whole organisations that begin with nothing: no draw has anything of the one before
// it, neither objects nor what the server keeps ready.
func TestWorldsOfFreshOrganisations(t *testing.T) {
	t.Parallel()
	worldsProperty(t, freshDraws, (*pair).fresh)
}

// S3, S5, S6: the same for secrets and scripts that chance makes.
func TestWorldsProperty(t *testing.T) {
	t.Parallel()
	worldsProperty(t, worldDraws, func(_ *pair, g *servertest.Gateway) *servertest.Gateway { return g })
}

func worldsProperty(t *testing.T, draws int, in func(*pair, *servertest.Gateway) *servertest.Gateway) {
	t.Helper()
	p := newPair(t)
	text := func(least int) *rapid.Generator[string] {
		return rapid.Map(rapid.StringMatching(`[a-z0-9-]{0,40}`), func(s string) string { return strings.Repeat("x", least) + s })
	}
	worlds := rapid.Custom(func(rt *rapid.T) secretly {
		return secretly{
			File: text(0).Draw(rt, "file"), Plan: text(0).Draw(rt, "plan"), Answer: text(0).Draw(rt, "answer"),
			Value: text(vault.MinValueBytes).Draw(rt, "value"), Key: rapid.IntRange(0, 2).Draw(rt, "key"), Mark: rapid.IntRange(0, 1).Draw(rt, "mark"),
			High:  rapid.SliceOfN(rapid.IntRange(0, len(highSteps)-1), 0, 6).Draw(rt, "high"),
			Asked: text(0).Draw(rt, "asked"), Word: rapid.SampledFrom([]string{"", "approve", "reject"}).Draw(rt, "word"),
			Rival: rapid.SliceOfNDistinct(rapid.IntRange(0, len(rivalChanges)-1), 0, len(rivalChanges), rapid.ID[int]).Draw(rt, "rival"),
		}
	})
	tried, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if tried++; tried > draws && !failed {
			return
		}
		script := rapid.SliceOfN(rapid.IntRange(0, len(lowCalls)-1), 1, 40).Draw(rt, "script")
		a, b := worlds.Draw(rt, "a"), worlds.Draw(rt, "b")
		if diff := gocmp.Diff(p.world(t, in(p, p.of[0]), &a, script), p.world(t, in(p, p.of[1]), &b, script)); diff != "" {
			failed = true
			rt.Fatalf("a low caller sees the difference of %+v and %+v:\n%s", a, b, diff)
		}
	})
}

// S6: what the server counts of itself says nothing of an organisation, a capability, a subject, a space or a label, whoever
// did what: each label is of a closed set.
func TestMetricsHaveClosedLabels(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.world(t, p.of[0], &plain, everything())
	label := regexp.MustCompile(`([a-z]+)="([^"]*)"`)
	may := map[string]func(string) bool{
		"code": func(v string) bool { _, known := abi.Code(v).Info(); return known || v == "OK" },
		"function": func(v string) bool {
			return slices.ContainsFunc(abi.Functions(), func(f abi.Function) bool { return f.Name == v })
		},
		"outcome": func(v string) bool { return v == "done" || v == "refused" },
		"le":      func(v string) bool { _, err := strconv.ParseFloat(v, 64); return err == nil },
		"version": func(v string) bool { return v == version.Version },
		"commit":  func(v string) bool { return v == version.Commit },
	}
	counted := 0
	for line := range strings.Lines(string(p.of[0].Do("GET", p.of[0].Ops+"/metrics", "", nil).Want(200).Body)) {
		if !strings.HasPrefix(line, "ecotone_") {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go_") && !strings.HasPrefix(line, "process_") {
				t.Errorf("the metrics say %s", line)
			}
			continue
		}
		counted++
		name, labels, _ := strings.Cut(line, "{")
		for _, word := range []string{"org", "default", "rival", "capability", "ref", "subject", "alice", "label", "secret", "world", "space"} {
			if slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' }), word) {
				t.Errorf("the metric %s speaks of %s", name, word)
			}
		}
		for _, l := range label.FindAllStringSubmatch(labels, -1) {
			if admits := may[l[1]]; admits == nil || !admits(l[2]) {
				t.Errorf("%s has the label %s=%q", name, l[1], l[2])
			}
		}
	}
	if counted < 100 {
		t.Errorf("%d series", counted)
	}
}

// S5, S6: what is hidden from a caller is refused in the metrics too, and they do not say why: a file that is not there, and one
// that is above the caller, count alike.
func TestMetricsDoNotTellAbsentFromHidden(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	moved := func(secret *secretly) string {
		return strings.Join(p.world(t, p.of[0], secret, everything()), "\n")
	}
	text := moved(&plain)
	for _, said := range []string{`metric ecotone_host_calls_total{function="file_read",outcome="refused"} moved by `, `metric ecotone_answers_total{code="OK"} moved by `} {
		if !strings.Contains(text, said) {
			t.Errorf("nothing like %s in the transcript", said)
		}
	}
	if strings.Contains(text, `metric ecotone_host_calls_total{function="file_read",outcome="refused"} moved by 0`) {
		t.Error("no read was refused: the test shows nothing")
	}
	for _, name := range slices.Sorted(maps.Keys(differing)) {
		other := plain
		differing[name](&other)
		if got := moved(&other); metricsOf(got) != metricsOf(text) {
			t.Errorf("the metrics tell %s:\n%s", name, gocmp.Diff(metricsOf(text), metricsOf(got)))
		}
	}
}

// metricsOf is what a transcript says of metrics.
func metricsOf(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "metric ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

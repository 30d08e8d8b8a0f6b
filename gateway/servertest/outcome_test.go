package servertest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// spinning is a gateway with test:busy.spin@1, which never ends, and test:busy.leaf@1.
func spinning(t *testing.T, options ...func(*server.Options)) (*servertest.Gateway, *servertest.Session) {
	t.Helper()
	g := servertest.Start(t, options...)
	admitAll(t, g, scripted(w.Manifest("busy"), scripts{"spin": {{"spin"}}, "leaf": {{"time_now"}}}), "sandbox", nil)
	withoutEnd(t, g, "sandbox")
	return g, g.Open("user:alice", "sandbox", nil)
}

// inFlight starts an invocation that does not end by itself and returns its id once it is recorded.
func inFlight(t *testing.T, g *servertest.Gateway, s *servertest.Session, ref string) (string, chan servertest.Response) {
	t.Helper()
	known := map[string]bool{}
	for _, row := range g.Rows("&kind=invocation") {
		known[row["auditId"].(string)] = true
	}
	started := g.Server.Started()
	done := make(chan servertest.Response, 1)
	go func() { done <- s.Invoke(ref, map[string]int{}) }()
	for range 1000 {
		for _, row := range g.Rows("&kind=invocation") {
			if id := row["auditId"].(string); !known[id] && g.Server.Started() > started {
				return id, done
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the invocation does not appear in the audit")
	return "", nil
}

// PF-D4: an invocation is cancelled by its own session and by nobody else, again and again, and its
// row says so.
func TestOutcomeCancel(t *testing.T) {
	t.Parallel()
	g, s := spinning(t)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 60_000})
	other := g.Open("user:alice", "sandbox", nil)
	cancel := func(by *servertest.Session, id string) servertest.Response {
		return g.Do("POST", g.Invoke+"/v1/invocations/"+id+":cancel", by.Token, nil)
	}
	for range 3 {
		id, done := inFlight(t, g, s, "test:busy.spin@1")
		cancel(other, id).Refused(abi.CodeNotFound)
		g.Do("POST", g.Invoke+"/v1/invocations/"+id+":cancel", "", nil).Refused(abi.CodeUnauthenticated)
		cancel(s, id).Want(202)
		r := (<-done).Refused(abi.CodeCanceled)
		if got := r.Header.Get("Ecotone-Invocation"); got != id {
			t.Errorf("%s ended, %s was cancelled", got, id)
		}
		if ended := g.Row(id)["ended"].(map[string]any); ended["code"] != "CANCELED" || ended["outcome"] != "failed" {
			t.Errorf("the row says %v", ended)
		}
		cancel(s, id).Want(202) // it ended: the state is all there is to answer
		cancel(other, id).Refused(abi.CodeNotFound)
		errnosOf(s.Invoke("test:busy.leaf@1", map[string]int{}))
	}
}

// M32: one's own invocations, and nothing that tells another's from none.
func TestOutcomeInvocations(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	other := g.Open("user:alice", "sandbox", nil)
	id := s.Invoke("test:echo.do@1", map[string]int{"n": 1}).Want(200).Header.Get("Ecotone-Invocation")
	show := func(by *servertest.Session, id string) servertest.Response {
		return g.Do("GET", g.Invoke+"/v1/invocations/"+id, by.Token, nil)
	}
	var row struct {
		AuditID string
		Ended   struct{ Outcome string }
	}
	if show(s, id).Want(200).JSON(&row); row.AuditID != id || row.Ended.Outcome != "completed" {
		t.Errorf("%+v", row)
	}
	var absent []byte
	for _, r := range []servertest.Response{show(other, id), show(other, "01ARZ3NDEKTSV4RRFFQ69G5FAV"), show(s, "01ARZ3NDEKTSV4RRFFQ69G5FAV"), show(s, "x"), show(s, "..")} {
		if body := constant(t, r.Refused(abi.CodeNotFound)); absent == nil {
			absent = body
		} else if !bytes.Equal(body, absent) {
			t.Errorf("%s\nand\n%s", body, absent)
		}
	}
}

// constant is a problem document without its audit id.
func constant(t *testing.T, r servertest.Response) []byte {
	t.Helper()
	id, _ := wellFormed(t, r)["auditId"].(string)
	if id == "" {
		t.Fatalf("no audit id in %s", r.Body)
	}
	return bytes.ReplaceAll(r.Body, []byte(id), []byte("ID"))
}

// X60: what is listed is exactly what may be invoked, with its schemas; what is denied is absent.
func TestOutcomeCapabilities(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(scripted(w.Manifest("listed"), scripts{"one": {{"time_now"}}, "two": {{"time_now"}}, "three": {{"http_fetch", "{}", ""}}})).Want(201)
	g.Install("listed", []string{"project"}, nil).Want(200)
	refs := []string{"test:listed.one@1", "test:listed.three@1", "test:listed.two@1"}
	grants := map[string]string{}
	for _, ref := range refs {
		grants[ref] = g.Grant("user:alice", ref, "project")
		g.Grant("user:alice", ref, "sandbox")
	}
	for _, environment := range []string{"project", "sandbox", "org"} {
		s := g.Open("user:alice", environment, nil)
		check := func() []string {
			var page struct {
				Items []struct {
					Ref         string
					Biome       string
					InputSchema json.RawMessage
				}
			}
			g.Do("GET", g.Invoke+"/v1/capabilities", s.Token, nil).Want(200).JSON(&page)
			var listed []string
			for _, i := range page.Items {
				if listed = append(listed, i.Ref); i.Biome != "listed" || len(i.InputSchema) == 0 {
					t.Errorf("%+v", i)
				}
			}
			for _, ref := range refs {
				if may := s.Invoke(ref, map[string]int{}).Status == 200; may != slices.Contains(listed, ref) {
					t.Errorf("%s in %s: invoked %v, listed %v", ref, environment, may, listed)
				}
			}
			return listed
		}
		before := check()
		if environment != "project" {
			continue
		}
		g.Control("DELETE", "/v1/grants/"+grants[refs[0]], nil)
		if after := check(); len(before) != 3 || len(after) != 2 {
			t.Errorf("%v, and after a revocation %v", before, after)
		}
	}
}

// PF-D5, PF-D3: the sooner of the caller's deadline and the environment's limit ends a run.
func TestOutcomeDeadline(t *testing.T) {
	t.Parallel()
	g, s := spinning(t)
	for _, c := range []struct {
		wall   int64
		header string
	}{{60_000, "300"}, {300, "60000"}} {
		lowerLimits(t, g, "sandbox", map[string]int64{"wall": c.wall})
		began := time.Now()
		s.Invoke("test:busy.spin@1", map[string]int{}, "Ecotone-Deadline-Ms", c.header).Refused(abi.CodeDeadline)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%+v took %v", c, took)
		}
	}
}

// S6: a session that is not cleared for what an invocation made gets the same document, whatever
// happened: to the byte, headers included, and in what it is shown of the row.
func TestOutcomeWithheld(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	p := w.Provide("test:secret.do@1", "run", abi.ReachOwner)
	p.OutputClassification = abi.Secret
	p.OutputSchema = json.RawMessage(`{"maxLength":10}`)
	g.Upload(w.Echo(w.Manifest("secret", p))).Want(201)
	g.Grant("user:alice", "test:secret.do@1", "sandbox")
	s := g.Open("user:alice", "sandbox", map[string]any{"clearance": "internal"})
	type world struct {
		Status int
		Header map[string][]string
		Body   string
		Row    string
	}
	var first *world
	for _, secret := range []string{`"a"`, `"bbbbb"`, `"longer than the capability's own schema lets it be"`, `{"k":"` + strings.Repeat("c", 5000) + `"}`} {
		r := s.Invoke("test:secret.do@1", []byte(secret)).Refused(abi.CodeClassificationFlow)
		id := r.Header.Get("Ecotone-Invocation")
		for _, h := range []string{"Date"} {
			r.Header.Del(h)
		}
		shown := g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200)
		var row map[string]any
		shown.JSON(&row)
		for _, k := range []string{"time", "index"} { // when it was decided, and after how many others
			delete(row, k)
		}
		plain := func(s string) string { return strings.ReplaceAll(s, id, "ID") }
		r.Header.Set("Ecotone-Invocation", "ID")
		got := &world{r.Status, r.Header, plain(string(r.Body)), plain(fmt.Sprint(row))}
		if first == nil {
			first = got
		} else if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("another world shows:\n%s", diff)
		}
		if r.Header.Get("Ecotone-Classification") != "" {
			t.Error("the label is shown")
		}
	}
}

// S3: what a session was given, it carries: no header, a public one and a forged one all start at the
// mark, and a sink below it is closed from then on.
func TestOutcomeMark(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	admitAll(t, g, scripted(w.Manifest("sink"), scripts{"put": {{"kv_put", "k", "v"}}}), "sandbox", nil)
	if got := errnosOf(s.Invoke("test:sink.put@1", map[string]int{})); got[0] != 0 {
		t.Fatalf("a public sink: %v", got)
	}
	label := func(header ...string) string {
		return s.Invoke("test:echo.do@1", map[string]int{"n": 1}, header...).Want(200).Header.Get("Ecotone-Classification")
	}
	if got := label(); got != "public" {
		t.Errorf("at first %s", got)
	}
	if got := label("Ecotone-Classification", "secret"); got != "secret" {
		t.Errorf("declared secret: %s", got)
	}
	for _, header := range [][]string{nil, {"Ecotone-Classification", "public"}, {"Ecotone-Classification", "internal"}} {
		if got := label(header...); got != "secret" {
			t.Errorf("with %v it starts at %s", header, got)
		}
	}
	if got := errnosOf(s.Invoke("test:sink.put@1", map[string]int{}, "Ecotone-Classification", "public")); got[0] != abi.EDENIED {
		t.Errorf("a public sink after a secret answer: %v", got)
	}
	if got := errnosOf(g.Open("user:alice", "sandbox", nil).Invoke("test:sink.put@1", map[string]int{})); got[0] != 0 {
		t.Errorf("another session: %v", got)
	}
}

// A server that stops tells what runs to end, answers it, records it and takes nothing new.
func TestOutcomeDrain(t *testing.T) {
	t.Parallel()
	g, s := spinning(t, func(o *server.Options) { o.DrainTimeout = 2 * time.Second })
	was := g.Control("GET", "/v1/environments/sandbox", nil)
	g.Control("PUT", "/v1/environments/sandbox", map[string]any{"limits": map[string]int64{"wall": 60_000}}, "If-Match", was.Header.Get("ETag")).Want(200)
	id, done := inFlight(t, g, s, "test:busy.spin@1")
	refused := make(chan bool, 1)
	go func() { // invocations until the listener is gone: the last ones are refused
		last := abi.Code("")
		for {
			r, err := http.DefaultTransport.RoundTrip(newInvocation(g, s, "test:busy.leaf@1"))
			if err != nil {
				refused <- last == abi.CodeDraining
				return
			}
			var p struct{ Code abi.Code }
			if json.NewDecoder(r.Body).Decode(&p) == nil {
				last = p.Code
			}
			_ = r.Body.Close()
		}
	}()
	g.Stop()
	(<-done).Refused(abi.CodeDraining)
	if !<-refused {
		t.Error("invocations were taken until the end")
	}
	again := servertest.Start(t, servertest.In(g.Dir))
	if ended := again.Row(id)["ended"].(map[string]any); ended["code"] != "DRAINING" || ended["outcome"] != "failed" {
		t.Errorf("the row says %v", ended)
	}
}

// newInvocation is one request that is its connection's only one.
func newInvocation(g *servertest.Gateway, s *servertest.Session, ref string) *http.Request {
	r, _ := http.NewRequest("POST", g.Invoke+"/v1/invoke/"+ref, strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	return r
}

package crashtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// world is what outlives the server: its directory, the origin, the credentials, and everything
// that was ever acknowledged.
type world struct {
	t        testing.TB
	dir      string
	mode     audit.Durability
	origin   *origin
	operator string
	session  string

	mu         sync.Mutex
	done       map[string]string // invocation → id, answered 200
	failed     map[string]string // invocation → code, answered with a problem
	unrecorded int               // answered with AUDIT_UNAVAILABLE
	acked      acked
	heads      [][]byte // fetched while it served, in order
	fresh      []string // ids answered since the last check
	rows       map[string]audit.Row
	byID       map[string]string // id → invocation, from the announced effects
	lastRow    string            // the last row that was read
	killedIn   string            // id of the request in whose handler the server died
}

// newWorld sets a gateway up on a new directory and leaves it running.
func newWorld(t testing.TB, mode audit.Durability) (*world, *process) {
	t.Helper()
	w := &world{
		t: t, dir: filepath.Join(t.TempDir(), "data"), mode: mode, origin: newOrigin(t), done: map[string]string{}, failed: map[string]string{},
		acked: newAcked(), rows: map[string]audit.Row{}, byID: map[string]string{},
	}
	p := w.start()
	token, err := os.ReadFile(filepath.Join(w.dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	w.operator = strings.TrimSpace(string(token))
	w.must(p, "POST", "/v1/biomes", guest(), 201, nil, "Content-Type", "application/wasm")
	var biome struct {
		Digest string `json:"digest"`
	}
	w.must(p, "GET", "/v1/biomes/crash", nil, 200, &biome)
	port := w.origin.URL[strings.LastIndexByte(w.origin.URL, ':')+1:]
	w.must(p, "PUT", "/v1/endpoints/origin", []byte(`{"rule":{"scheme":"http","host":"127.0.0.1","port":`+port+`,"methods":["GET"],"path":"/**"},"clearance":"internal","label":"public","loopback":true}`),
		200, nil, "If-None-Match", "*")
	w.must(p, "PUT", "/v1/installs/crash", []byte(`{"digest":"`+biome.Digest+`","environments":["environment:project"],"endpoints":["origin"]}`), 200, nil, "If-None-Match", "*")
	for _, ref := range []string{refDo, refKV, refRead, refPut} {
		w.must(p, "POST", "/v1/grants", []byte(`{"subject":"user:alice","capability":"`+ref+`","environment":"environment:project"}`), 201, nil)
	}
	var opened struct {
		Token string `json:"token"`
	}
	w.must(p, "POST", "/v1/sessions", []byte(`{"subject":"user:alice","environment":"environment:project","files":true}`), 201, &opened)
	w.session = opened.Token
	return w, p
}

// start starts a server on the directory and waits until it serves.
func (w *world) start() *process {
	w.t.Helper()
	return start(w.t, w.dir, w.mode)
}

// client keeps no connection: a dead server's would come back as errors of the next one.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}

type response struct {
	status int
	header http.Header
	body   []byte
}

// send makes one request. An error means that no whole answer came.
func send(method, url, token string, body []byte, header ...string) (response, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, raw}, err
}

func (r response) code() string {
	var p struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(r.body, &p)
	return p.Code
}

// must makes a request of the operator's that has to succeed.
func (w *world) must(p *process, method, path string, body []byte, status int, v any, header ...string) {
	w.t.Helper()
	r, err := send(method, p.Admin+path, w.operator, body, header...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.status != status {
		w.t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
	}
	if v != nil {
		if err := json.Unmarshal(r.body, v); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, r.body)
		}
	}
}

// invoke invokes for an id and writes down what was answered. The error is that there was no
// answer.
func (w *world) invoke(p *process, ref, id string) (response, error) {
	input := document(w.origin.URL, id)
	r, err := send("POST", p.Invoke+"/v1/invoke/"+ref, w.session, []byte(input))
	if err != nil {
		return r, err
	}
	invocation := r.header.Get("Ecotone-Invocation")
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.code() == string(abi.CodeAuditUnavailable): // its row is what could not be written
		w.unrecorded++
	case r.status != http.StatusOK:
		w.failed[invocation] = r.code()
	case string(r.body) != input:
		w.t.Errorf("%s answered %q for %q", ref, r.body, input)
	default:
		w.done[invocation] = id
		if ref == refDo {
			w.fresh = append(w.fresh, id)
		}
	}
	return r, nil
}

// Load per round. The totals stay below the limits of a workspace and of a space's keys.
const (
	clients    = 6
	perClient  = 25
	adminTurns = 10
)

// load works on p until it dies or the work is done. answered is called with the number of
// each answer that came, of either kind.
func (w *world) load(p *process, answered func(n int)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := 0
	count := func() {
		mu.Lock()
		n++
		now := n
		mu.Unlock()
		answered(now)
	}
	for range clients {
		wg.Go(func() {
			for range perClient {
				if _, err := w.invoke(p, refDo, newID()); err != nil {
					w.lost(p, err)
					return
				}
				count()
			}
		})
	}
	wg.Go(func() {
		for turn := range adminTurns {
			if err := w.administer(p, turn); err != nil {
				w.lost(p, err)
				return
			}
			count()
		}
	})
	wg.Wait()
}

// lost holds that an answer fails to come only because the server is being killed.
func (w *world) lost(p *process, err error) {
	select {
	case <-p.done:
	case <-time.After(patience):
		w.t.Errorf("the server lives and did not answer: %v", err)
	}
}

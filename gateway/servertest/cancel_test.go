package servertest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// cancelled is what there is to see of a cancellation.
type cancelled struct {
	Invocation string
	Cancel     string
}

func requestCancel(g *servertest.Gateway, by *servertest.Session, id string) servertest.Response {
	g.T.Helper()
	return g.Do("POST", g.Invoke+"/v1/invocations/"+id+":cancel", by.Token, nil)
}

// cancelState is the state that an answer or a row shows.
func cancelState(r servertest.Response) string {
	r.T.Helper()
	var c cancelled
	r.JSON(&c)
	return c.Cancel
}

// provenSoon asks until the row of an invocation is closed, and holds the states to their order.
func provenSoon(t *testing.T, g *servertest.Gateway, s *servertest.Session, id string) map[string]any {
	t.Helper()
	order := map[string]int{"requested": 1, "acknowledged": 2, "proven": 3}
	for last, end := 0, time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var row map[string]any
		g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200).JSON(&row)
		state, _ := row["cancel"].(string)
		if order[state] < max(last, 1) {
			t.Fatalf("the cancellation is %q after it was in state %d", state, last)
		}
		last = order[state]
		if state == "proven" {
			return row
		}
		if row["ended"] != nil {
			t.Fatalf("an end without proof: %v", row)
		}
	}
	t.Fatal("the cancellation is never proven")
	return nil
}

// cancelProof holds the row of a cancelled invocation to what it must say.
func cancelProof(t *testing.T, g *servertest.Gateway, id string) {
	t.Helper()
	row := g.Row(id)
	ended := row["ended"].(map[string]any)
	said, _ := ended["cancel"].(map[string]any)
	if row["cancel"] != "proven" || ended["outcome"] != "failed" || ended["code"] != "CANCELED" || said["requestedAt"] == nil || said["acknowledgedAt"] == nil {
		t.Errorf("the row says %v, %v", row["cancel"], ended)
	}
	for _, r := range g.Rows("&kind=admin") {
		a := r["admin"].(map[string]any)
		if a["operation"] == "invocation.cancelled" && a["object"] == id && a["actor"] == "user:alice" {
			return
		}
	}
	t.Error("nobody wrote down who cancelled")
}

// M41, S1: what was asked to end is not what has ended. A guest that computes: requested, seen by the guest's
// goroutine, proven when its call has returned and its row is closed; only its own session may ask.
func TestCancelSpinning(t *testing.T) {
	t.Parallel()
	g, s := spinning(t)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 600_000})
	other := g.Open("user:alice", "sandbox", nil)
	id, done := inFlight(t, g, s, "test:busy.spin@1")
	for _, r := range []servertest.Response{requestCancel(g, other, id), g.Do("GET", g.Invoke+"/v1/invocations/"+id, other.Token, nil)} {
		r.Refused(abi.CodeNotFound)
	}
	if state := cancelState(g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200)); state != "" {
		t.Errorf("nobody asked, and the state is %q", state)
	}
	if state := cancelState(requestCancel(g, s, id).Want(202)); state == "" {
		t.Error("an answer without a state")
	}
	provenSoon(t, g, s, id)
	(<-done).Refused(abi.CodeCanceled)
	cancelProof(t, g, id)
	if state := cancelState(requestCancel(g, s, id).Want(202)); state != "proven" {
		t.Errorf("asked again: %q", state)
	}
	requestCancel(g, other, id).Refused(abi.CodeNotFound)
	errnosOf(s.Invoke("test:busy.leaf@1", map[string]int{}))
}

// M41: a guest that waits for an origin that does not answer is told at once.
func TestCancelWaitingForAnOrigin(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	reached := make(chan struct{}, 8)
	release := make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
		_, _ = io.WriteString(rw, "late")
	}))
	defer origin.Close()
	defer close(release)
	allowOrigin(g, origin.URL)
	m := w.Manifest("slow")
	m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	admitAll(t, g, scripted(m, scripts{"get": {fetching(origin.URL + "/"), {"spin"}}, "leaf": {{"time_now"}}}), "project", map[string]any{"endpoints": []string{"origin"}})
	lowerLimits(t, g, "project", map[string]int64{"httpWall": 60_000, "wall": 600_000, "fuel": abi.OperatorMax})
	s := g.Open("user:alice", "project", nil)
	done := make(chan servertest.Response, 1)
	go func() { done <- s.Invoke("test:slow.get@1", map[string]int{}) }()
	<-reached
	id := runningRow(t, g, "test:slow.get@1")
	if state := cancelState(requestCancel(g, s, id).Want(202)); state == "" {
		t.Error("an answer without a state")
	}
	provenSoon(t, g, s, id)
	(<-done).Refused(abi.CodeCanceled)
	cancelProof(t, g, id)
	errnosOf(s.Invoke("test:slow.leaf@1", map[string]int{}))
}

// M41: what has ended by itself is not cancelled afterwards, and says so; and one that still waits for
// a place never runs.
func TestCancelEndedOrNotBegun(t *testing.T) {
	t.Parallel()
	g, s := spinning(t, func(o *server.Options) {
		if err := o.Limits.Set("running", 1); err != nil {
			t.Fatal(err)
		}
	})
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 600_000})
	id := s.Invoke("test:busy.leaf@1", map[string]int{}).Want(200).Header.Get("Ecotone-Invocation")
	requestCancel(g, s, id).Refused(abi.CodeConflict)
	var row map[string]any
	g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200).JSON(&row)
	if ended := row["ended"].(map[string]any); row["cancel"] != nil || ended["cancel"] != nil || ended["outcome"] != "completed" {
		t.Errorf("it completed, and the row says %v", row)
	}
	for _, absent := range []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"} {
		requestCancel(g, s, absent).Refused(abi.CodeNotFound)
	}
	running, done := inFlight(t, g, s, "test:busy.spin@1")
	started := g.Server.Started()
	waiting := make(chan servertest.Response, 1)
	go func() { waiting <- s.Invoke("test:busy.leaf@1", map[string]int{}, "Ecotone-Deadline-Ms", "1500") }()
	(<-waiting).Refused(abi.CodeDeadline)
	if g.Server.Started() != started {
		t.Error("it ran without a place")
	}
	requestCancel(g, s, running).Want(202)
	(<-done).Refused(abi.CodeCanceled)
	cancelProof(t, g, running)
}

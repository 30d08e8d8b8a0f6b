package servertest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// S3, S6: while an invocation runs, its label is still rising and its session's mark has not
// followed. What it announced is made of what it read, so its own session is not shown it.
func TestARunningInvocationTellsItsSessionNothing(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admitAll(t, g, scripted(w.Manifest("teller"), scripts{
		"warm": {{"file_stat", "."}},
		"tell": {{"file_read", "in.txt", 0, 100}, {"http_fetch", `{"method":"GET","url":"https://origin.example/told"}`, ""}, {"spin"}},
	}), "project", nil)
	withoutEnd(t, g, "project")
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	s.Invoke("test:teller.warm@1", map[string]int{}).Want(200)
	// What comes into a workspace behind the gateway's back is regulated.
	if err := os.WriteFile(filepath.Join(g.Dir, "workspaces", s.Workspace, "in.txt"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan servertest.Response, 1)
	go func() { done <- s.Invoke("test:teller.tell@1", map[string]int{}) }()
	id := runningRow(t, g, "test:teller.tell@1")
	row := g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200)
	if bytes.Contains(row.Body, []byte("told")) {
		t.Errorf("the session is shown what a running invocation announced: %s", row.Body)
	}
	g.Do("POST", g.Invoke+"/v1/invocations/"+id+":cancel", s.Token, nil).Want(202)
	(<-done).Refused(abi.CodeCanceled)
	g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200)
	var shown struct {
		Mark abi.Classification `json:"mark"`
	}
	g.Control("GET", "/v1/sessions/"+s.ID, nil).Want(200).JSON(&shown)
	if shown.Mark != abi.Regulated {
		t.Errorf("the session is marked %s after it was told how the invocation ended", shown.Mark)
	}
}

// runningRow waits until an invocation of ref has announced an effect, and returns its id.
func runningRow(t *testing.T, g *servertest.Gateway, ref string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, r := range g.Rows("&kind=invocation&capability=" + ref) {
			if r["effects"] != nil {
				return r["auditId"].(string)
			}
		}
	}
	t.Fatalf("no invocation of %s announced anything", ref)
	return ""
}

// S3, S18: to a session that was closed nothing is released, and so not the label either, which
// no mark took on.
func TestAClosedSessionIsNotToldTheLabel(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admitAll(t, g, scripted(w.Manifest("late"), scripts{"spin": {{"kv_get", "k"}, {"http_fetch", `{"method":"GET","url":"https://origin.example/"}`, ""}, {"spin"}}}), "project", nil)
	withoutEnd(t, g, "project")
	s := g.Open("user:alice", "project", nil)
	done := make(chan servertest.Response, 1)
	go func() {
		done <- s.Invoke("test:late.spin@1", map[string]int{}, "Ecotone-Classification", "secret", "Ecotone-Deadline-Ms", "1500")
	}()
	runningRow(t, g, "test:late.spin@1")
	g.Control("DELETE", "/v1/sessions/"+s.ID, nil).Want(200)
	if got := (<-done).Refused(abi.CodeGrantRevoked).Header.Get("Ecotone-Classification"); got != "" {
		t.Errorf("the session was closed and is told that the answer was %s", got)
	}
}

// PF-D17: what looks like a token fills no memory. It has to be one.
func TestABodyNeedsARealToken(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	s := g.Open("user:alice", "project", nil)
	other := []byte(s.Token)
	other[len(other)-2] ^= 1
	body := bytes.Repeat([]byte(" "), 100<<10)
	g.Do("POST", g.Invoke+"/v1/invoke/a:b.c@1", string(other), body).Refused(abi.CodePayloadTooLarge)
	g.Do("POST", g.Invoke+"/v1/invoke/a:b.c@1", s.Token, body).Refused(abi.CodeMissingGrant)
}

package servertest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// backup copies a directory and answers what puts the copy back in its place.
func backup(t *testing.T, dir string) (restore func()) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
		for _, keys := range []string{"keys", filepath.Join("keys", "orgs")} { // which CopyFS leaves readable
			files, _ := filepath.Glob(filepath.Join(dir, keys, "*"))
			for _, f := range files {
				if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
					if err := os.Chmod(f, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// revokedSince is a stopped gateway on which user:alice's right was revoked after what backs up.
func revokedSince(t *testing.T, of func(dir string) string, options ...func(*server.Options)) (dir string, restore func()) {
	t.Helper()
	g := servertest.Start(t, options...)
	admitAll(t, g, scripted(w.Manifest("mark"), scripts{"do": {{"time_now"}}}), "project", nil)
	g.Open("user:alice", "project", nil).Invoke("test:mark.do@1", none).Want(200)
	g.Stop()
	restore = backup(t, of(g.Dir))
	g = servertest.Start(t, append(options, servertest.In(g.Dir))...)
	s := g.Open("user:alice", "project", nil)
	s.Invoke("test:mark.do@1", none).Want(200)
	revokeAll(g, "user:alice", "test:mark.do@1")
	s.Invoke("test:mark.do@1", none).Refused(abi.CodeMissingGrant)
	g.Stop()
	return g.Dir, restore
}

// S18: yesterday's store under today's mark does not open. The operator may take it all the same; then
// its rights are in force, the audit log says so, and the next start needs no word.
func TestStoreOfYesterday(t *testing.T) {
	t.Parallel()
	dir, restore := revokedSince(t, func(dir string) string { return filepath.Join(dir, "store") })
	restore()
	servertest.DoesNotOpen(t, abi.CodePolicyStale, servertest.In(dir))
	servertest.DoesNotOpen(t, abi.CodePolicyStale, servertest.In(dir)) // a refusal changes nothing
	accept := func(o *server.Options) { o.AcceptPolicy = true }
	g := servertest.Start(t, servertest.In(dir), accept)
	g.Open("user:alice", "project", nil).Invoke("test:mark.do@1", none).Want(200)
	var page struct {
		Items []struct {
			System struct{ Event string }
		}
	}
	g.Control("GET", "/v1/audit?org=system&kind=system&limit=50", nil).Want(200).JSON(&page)
	said := false
	for _, i := range page.Items {
		said = said || i.System.Event == "policy accepted"
	}
	if !said {
		t.Errorf("the audit log does not say that it was accepted: %+v", page)
	}
	g.Stop()
	servertest.Start(t, servertest.In(dir)).Stop()
}

// S18: a whole directory of yesterday is noticed when the mark is kept elsewhere.
func TestDirectoryOfYesterday(t *testing.T) {
	t.Parallel()
	elsewhere := filepath.Join(t.TempDir(), "policy.mark")
	apart := func(o *server.Options) { o.PolicyMark = elsewhere }
	dir, restore := revokedSince(t, func(dir string) string { return dir }, apart)
	restore()
	servertest.DoesNotOpen(t, abi.CodePolicyStale, servertest.In(dir), apart)
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	servertest.DoesNotOpen(t, abi.CodePolicyStale, servertest.In(dir), apart)
}

// S18: a mark that was cut off while it was written is made up for; one of another server is none.
func TestTornMark(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Open("user:alice", "project", nil)
	path := filepath.Join(g.Dir, "policy.mark")
	read := func() []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := read()
	g.Open("user:bob", "project", nil)
	g.Stop()
	after := read()
	half := len(after) / 2
	place := 0 // that the last change was written to
	if string(before[:half]) == string(after[:half]) {
		place = half
	}
	clear(after[place+100 : place+half])
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(after)
	servertest.Start(t, servertest.In(g.Dir)).Stop()
	whole := read()
	other := servertest.Start(t)
	other.Stop()
	foreign, err := os.ReadFile(filepath.Join(other.Dir, "policy.mark"))
	if err != nil {
		t.Fatal(err)
	}
	write(foreign)
	servertest.DoesNotOpen(t, abi.CodePolicyStale, servertest.In(g.Dir))
	write(whole)
	servertest.Start(t, servertest.In(g.Dir)).Stop()
}

// S18: what expired stays expired when the machine's clock is set back; deadlines, which are no rights,
// are kept by the machine's clock all the same.
func TestClockSetBackRevivesNothing(t *testing.T) {
	t.Parallel()
	later := func(o *server.Options) { o.Clock = func() time.Time { return time.Now().Add(48 * time.Hour) } }
	g := servertest.Start(t)
	admitAll(t, g, scripted(w.Manifest("late"), scripts{"do": {{"time_now"}}, "spin": {{"spin"}}}), "project", nil)
	withoutEnd(t, g, "project")
	g.Control("POST", "/v1/grants", map[string]string{
		"subject": "user:bob", "capability": "test:late.do@1", "environment": "environment:project", "expires": time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano),
	}).Want(201)
	bob := g.Open("user:bob", "project", nil)
	bob.Invoke("test:late.do@1", none).Want(200)
	g.Stop()

	g = servertest.Start(t, servertest.In(g.Dir), later)
	bob.G = g
	bob.Invoke("test:late.do@1", none).Refused(abi.CodeUnauthenticated) // the session, too
	g.Open("user:bob", "project", nil).Invoke("test:late.do@1", none).Refused(abi.CodeMissingGrant)
	g.Stop()

	g = servertest.Start(t, servertest.In(g.Dir))
	bob.G = g
	bob.Invoke("test:late.do@1", none).Refused(abi.CodeUnauthenticated)
	g.Open("user:bob", "project", nil).Invoke("test:late.do@1", none).Refused(abi.CodeMissingGrant)
	alice := g.Open("user:alice", "project", nil)
	alice.Invoke("test:late.do@1", none).Want(200)
	lowerLimits(t, g, "project", map[string]int64{"wall": 500})
	alice.Invoke("test:late.spin@1", none).Refused(abi.CodeDeadline)
}

// PF-A18: a grant of every resource there is reaches a session's workspace and nothing around it: not the
// policy's mark, not the store, not the audit log.
func TestGrantOfEverythingReachesNoProtectedPath(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	var calls []act
	for _, path := range []string{"policy.mark", "store/MANIFEST", "audit/key.pub", "keys/mark", "operator.token"} {
		for _, up := range []string{"../", "../../", "../../../", g.Dir + "/"} {
			calls = append(calls, act{"file_create", up + path, "overwritten"}, act{"file_read", up + path, 0, 100}, act{"file_remove", up + path})
		}
	}
	admitAll(t, g, scripted(w.Manifest("wide"), scripts{"do": calls}), "project", nil)
	revokeAll(g, "user:alice", "test:wide.do@1")
	g.Grant("user:alice", "test:wide.do@1", "project", "**")
	before := contents(t, filepath.Join(g.Dir, "keys"))
	for i, n := range errnosOf(g.Open("user:alice", "project", map[string]any{"files": true}).Invoke("test:wide.do@1", none)) {
		if n == 0 {
			t.Errorf("%v is done", calls[i])
		}
	}
	for path, was := range before {
		if is, err := os.ReadFile(path); err != nil || string(is) != string(was) {
			t.Errorf("%s changed", filepath.Base(path))
		}
	}
	g.Open("user:alice", "project", nil)
	g.Stop()
	servertest.Start(t, servertest.In(g.Dir)).Stop()
}

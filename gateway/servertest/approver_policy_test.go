package servertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// approveGrants are the ids of the grants to approve that stand.
func (a *asking) approveGrants() (out []string) {
	a.g.T.Helper()
	var list struct{ Items []struct{ ID string } }
	a.g.Control("GET", "/v1/approve-grants", nil).Want(200).JSON(&list)
	for _, g := range list.Items {
		out = append(out, g.ID)
	}
	return out
}

func (a *asking) occupy() (free func()) {
	a.g.T.Helper()
	admitAll(a.g.T, a.g, scripted(w.Manifest("busy"), scripts{"do": {{"spin"}}}), "project", nil)
	lowerLimits(a.g.T, a.g, "project", map[string]int64{"wall": 600_000, "fuel": 1 << 40})
	occupant := a.g.Open("user:alice", "project", nil)
	done := make(chan servertest.Response, 1)
	go func() { done <- occupant.Invoke("test:busy.do@1", none) }()
	for !strings.Contains(string(a.g.Do("GET", a.g.Ops+"/metrics", "", nil).Body), "\necotone_invocations_running 1\n") {
		time.Sleep(5 * time.Millisecond)
	}
	return func() {
		a.g.T.Helper()
		a.g.Control("DELETE", "/v1/sessions/"+occupant.ID, nil).Want(200)
		(<-done).Refused(abi.CodeGrantRevoked)
	}
}

func onePlace(o *server.Options) { _ = o.Limits.Set("running", 1) }

// S17: what was approved by a grant to approve that was revoked, or ran out, before it was used is void, and
// stays so when the approver has another grant.
func TestAnApproverLosesTheRight(t *testing.T) {
	t.Parallel()
	l := newLowering(t)
	id := l.approved("public", "endpoint:origin")
	for _, g := range l.approveGrants() {
		l.g.Control("DELETE", "/v1/approve-grants/"+g, nil).Want(200)
	}
	l.use(id, l.input).Refused(abi.CodeApprovalStale)
	l.g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "ann", "capability": "*"}).Want(201)
	l.use(id, l.input).Refused(abi.CodeApprovalStale)
	var doc struct {
		State   string
		Changed []string
	}
	l.g.Do("GET", l.g.Admin+"/v1/approvals/"+id, l.approver, nil).Want(200).JSON(&doc)
	if doc.State != "stale" || len(doc.Changed) != 1 || doc.Changed[0] != "approver" {
		t.Errorf("%+v", doc)
	}

	for _, g := range l.approveGrants() {
		l.g.Control("DELETE", "/v1/approve-grants/"+g, nil).Want(200)
	}
	ends := time.Now().Add(3 * time.Second)
	l.g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "ann", "capability": "*", "expires": ends}).Want(201)
	id = l.approved("public", "endpoint:origin")
	time.Sleep(time.Until(ends) + time.Millisecond)
	l.use(id, l.input).Refused(abi.CodeApprovalStale)
	if l.hits.Load() != 0 {
		t.Error("something passed")
	}
}

// S17, X42: the same for what was approved when there was no place to run.
func TestAnApproverLosesTheRightBeforeTheRun(t *testing.T) {
	t.Parallel()
	a := newAsking(t, onePlace)
	free := a.occupy()
	s := a.g.Open("user:alice", "project", nil)
	id := s.Invoke("ask:page.post@1", none).Waits()
	given := a.approveGrants()
	var doc approvalDoc
	if a.decide(a.approver, id, "approve").Want(200).JSON(&doc); doc.State != "approved" {
		t.Fatalf("%+v", doc)
	}
	bob := a.who("bob", "approver", "user:bob", "regulated", "*")
	for _, g := range given {
		a.g.Control("DELETE", "/v1/approve-grants/"+g, nil).Want(200)
	}
	free()
	// Somebody else's word does not take the place of the one that was given.
	if r := a.decide(bob, id, "approve"); r.Status != 200 {
		r.Refused(abi.CodeApprovalStale)
	}
	if got := settled(s, id); got.Approval.Status != "stale" || len(got.Approval.Changed) != 1 || got.Approval.Changed[0] != "approver" || a.hits.Load() != 0 {
		t.Errorf("%+v, it ran %d times", got, a.hits.Load())
	}
}

// sealedParts counts what approvals keep sealed, in the store of a gateway that was stopped.
func sealedParts(t *testing.T, dir, part string) int {
	t.Helper()
	st, err := badger.Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	n := 0
	err = st.View(t.Context(), func(tx store.Tx) error {
		return tx.Scan(store.Key("policy", "approval-"+part), nil, func([]byte, []byte) (bool, error) {
			n++
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// S17: what an approval keeps, input and answer, is kept until it expires and no longer, whether it was decided or
// not. What was asked, and what came of it, stays; and what has not expired keeps all. Time is policy's.
func TestApprovalsAreKeptUntilTheyExpire(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	short := a.g.Open("user:alice", "project", map[string]any{"expires": time.Now().Add(time.Hour)})
	long := a.g.Open("user:alice", "project", map[string]any{"expires": time.Now().Add(100 * time.Hour)})
	var ids, shown []string
	for _, s := range []*servertest.Session{short, long} {
		waits, ran := s.Invoke("ask:page.post@1", []byte(`{"n":1}`)).Waits(), s.Invoke("ask:page.post@1", []byte(`{"n":2}`)).Waits()
		a.decide(a.approver, ran, "approve").Want(200)
		if got := settled(s, ran); len(got.Approval.Output) == 0 {
			t.Fatalf("%+v", got)
		}
		ids = append(ids, waits, ran)
	}
	a.g.Stop()
	if in, out := sealedParts(t, a.g.Dir, "input"), sealedParts(t, a.g.Dir, "output"); in != 4 || out != 2 {
		t.Fatalf("%d inputs and %d outputs are kept", in, out)
	}
	later := func(o *server.Options) {
		o.EgressLoopback, o.Clock = true, func() time.Time { return time.Now().Add(2 * time.Hour) }
	}
	a.g = servertest.Start(t, servertest.In(a.g.Dir), later)
	look := func(id string) (doc approvalDoc) {
		a.g.Do("GET", a.g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc)
		return doc
	}
	for end := time.Now().Add(time.Minute); look(ids[0]).Input.Text != "" || look(ids[1]).Input.Text != ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the input of what has expired is still there")
		}
	}
	for _, id := range ids {
		shown = append(shown, look(id).State)
	}
	if got := strings.Join(shown, " "); got != "expired done pending done" {
		t.Errorf("they are %s", got)
	}
	for _, id := range ids[2:] {
		if look(id).Input.Text == "" {
			t.Error("the input of what has not expired is gone")
		}
	}
	a.decide(a.approver, ids[0], "approve").Refused(abi.CodeApprovalStale)
	a.g.Stop()
	if in, out := sealedParts(t, a.g.Dir, "input"), sealedParts(t, a.g.Dir, "output"); in != 2 || out != 1 {
		t.Errorf("%d inputs and %d outputs are kept", in, out)
	}
}

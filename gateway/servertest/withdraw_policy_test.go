package servertest_test

import (
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// withdrawn holds a request to being over by its own session's word.
func (a *asking) withdrawn(s *servertest.Session, id string) {
	a.g.T.Helper()
	if got := look(s, id); got.Approval.Status != "withdrawn" || got.Approval.Code != abi.CodeCanceled || got.Resolution == nil ||
		got.Resolution.Resolution != "withdrawn" || got.Resolution.Code != abi.CodeCanceled || got.Resolution.By != "user:alice" || got.Ended != nil {
		a.g.T.Errorf("its session is shown %+v", got)
	}
	var doc approvalDoc
	if a.g.Do("GET", a.g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc); doc.State != "withdrawn" {
		a.g.T.Errorf("the approver is shown %+v", doc)
	}
	var list struct{ Items []approvalDoc }
	a.g.Do("GET", a.g.Admin+"/v1/approvals?state=withdrawn", a.approver, nil).Want(200).JSON(&list)
	if len(list.Items) != 1 || list.Items[0].ID != id {
		a.g.T.Errorf("listed are %+v", list.Items)
	}
	for _, verdict := range []string{"approve", "reject"} {
		a.decide(a.approver, id, verdict).Refused(abi.CodeApprovalStale)
	}
	if state := cancelState(requestCancel(a.g, s, id).Want(202)); state != "proven" {
		a.g.T.Errorf("withdrawn again: %s", state)
	}
	if n := a.hits.Load(); n != 0 {
		a.g.T.Errorf("it ran %d times", n)
	}
}

// S17, X42: who asked takes it back: nobody is asked any more, and nobody can approve or reject it, also
// after a restart. Only its own session does.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	s := a.g.Open("user:alice", "project", nil)
	id := s.Invoke("ask:page.post@1", none).Waits()
	requestCancel(a.g, a.g.Open("user:alice", "project", nil), id).Refused(abi.CodeNotFound)
	if got := look(s, id); got.Approval.Status != "pending" {
		t.Fatalf("another session withdrew it: %+v", got)
	}
	if state := cancelState(requestCancel(a.g, s, id).Want(202)); state != "proven" {
		t.Errorf("it is %s", state)
	}
	a.withdrawn(s, id)
	events := 0
	for _, r := range a.g.Rows("&kind=admin") {
		if e := r["admin"].(map[string]any); e["operation"] == "approval.withdrawn" && e["object"] == id && e["actor"] == "user:alice" && e["code"] == nil {
			events++
		}
	}
	if events != 1 {
		t.Errorf("the log says %d times who withdrew it", events)
	}
	rejected := s.Invoke("ask:page.post@1", none).Waits()
	a.decide(a.approver, rejected, "reject").Want(200)
	requestCancel(a.g, s, rejected).Refused(abi.CodeConflict)
	ran := s.Invoke("ask:page.post@1", none).Waits()
	a.decide(a.approver, ran, "approve").Want(200)
	settled(s, ran)
	requestCancel(a.g, s, ran).Refused(abi.CodeConflict)
	if n := a.hits.Swap(0); n != 1 {
		t.Errorf("what was approved ran %d times", n)
	}
	a.g.Stop()
	a.g = servertest.Start(t, servertest.In(a.g.Dir), func(o *server.Options) { o.EgressLoopback = true })
	s.G = a.g
	a.withdrawn(s, id)
}

// X42: what was approved when there was no place to run, and is withdrawn before there is one, never runs.
func TestWithdrawWhatIsApproved(t *testing.T) {
	t.Parallel()
	a := newAsking(t, onePlace)
	free := a.occupy()
	s := a.g.Open("user:alice", "project", nil)
	id := s.Invoke("ask:page.post@1", none).Waits()
	var doc approvalDoc
	if a.decide(a.approver, id, "approve").Want(200).JSON(&doc); doc.State != "approved" {
		t.Fatalf("%+v", doc)
	}
	requestCancel(a.g, s, id).Want(202)
	a.withdrawn(s, id)
	free()
	a.withdrawn(s, id)
}

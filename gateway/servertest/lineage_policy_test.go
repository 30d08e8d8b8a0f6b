package servertest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// X32: a lineage is asked for with the id of its root: everything that was made for it, however deep, each row with the
// capabilities above it, so that why the innermost was denied can be read from the outermost down.
func TestLineage(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	chain := []string{"a:a.do@1", "b:b.do@1", "c:c.do@1", "d:d.do@1"}
	for i := len(chain) - 1; i >= 0; i-- {
		name := chain[i][:1]
		if i == len(chain)-1 {
			admit(g, name, script(name, nil, action{ref: chain[i], reach: abi.ReachOwner}), []string{"project"}, nil)
			continue
		}
		next := chain[i+1]
		admit(g, name, script(name, requires(abi.CapabilityRef(next)), action{ref: chain[i], reach: abi.ReachOwner, steps: []step{do("capability_invoke", next, "{}")}}),
			[]string{"project"}, map[string]any{"calls": []string{next}})
	}
	s := g.Open("user:alice", "project", nil)
	type decision struct {
		Capability string
		Verdict    string
		Code       abi.Code
		Parent     string `json:"parentInvocationId"`
		Root       string `json:"rootInvocationId"`
		Chain      []string
	}
	lineage := func(root string) (out []decision, ids []string) {
		var page struct {
			Items []struct {
				ID       string `json:"auditId"`
				Decision json.RawMessage
			}
		}
		g.Control("GET", "/v1/audit?oldest=true&root="+root, nil).Want(200).JSON(&page)
		for _, i := range page.Items {
			var d decision
			if err := json.Unmarshal(i.Decision, &d); err != nil {
				t.Fatal(err)
			}
			out, ids = append(out, d), append(ids, i.ID)
		}
		return out, ids
	}
	for _, denied := range []bool{false, true} {
		if denied {
			revokeAll(g, "user:alice", "d:d.do@1")
		}
		s.Invoke("a:a.do@1", none).Want(200) // another tree, which is not shown
		root := s.Invoke("a:a.do@1", none).Want(200).Header.Get("Ecotone-Invocation")
		rows, ids := lineage(root)
		if len(rows) != len(chain) || ids[0] != root {
			t.Fatalf("%v: %+v", ids, rows)
		}
		for i, d := range rows {
			want := decision{Capability: chain[i], Verdict: "allow"}
			if i > 0 {
				want.Parent, want.Root, want.Chain = ids[i-1], root, chain[:i]
			}
			if denied && i == len(chain)-1 {
				want.Verdict, want.Code = "deny", abi.CodeMissingGrant
			}
			if d.Capability != want.Capability || d.Verdict != want.Verdict || d.Code != want.Code || d.Parent != want.Parent || d.Root != want.Root || !slices.Equal(d.Chain, want.Chain) {
				t.Errorf("%d: %+v, not %+v", i, d, want)
			}
		}
		if inner, _ := lineage(ids[2]); len(inner) != 1 { // which is no root
			t.Errorf("from the middle: %+v", inner)
		}
	}
	g.Control("GET", "/v1/audit?root=x", nil).Refused(abi.CodeInvalidRequest)
	if rows, _ := lineage("01ARZ3NDEKTSV4RRFFQ69G5FAV"); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

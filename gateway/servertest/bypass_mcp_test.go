package servertest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// overMCP is the face for agents: a tool for each capability, or with meta the one that invokes.
type overMCP struct{ meta bool }

func (f overMCP) name() string {
	if f.meta {
		return "mcp-meta"
	}
	return "mcp-direct"
}
func (overMCP) prepare(*bypass, []attempt) {}
func (overMCP) own(ended) int64            { return 0 }

func (f overMCP) invoke(t *testing.T, w *bypass, h *attempt) ended {
	t.Helper()
	path, name, arguments := "", strings.NewReplacer(":", "__", "@", "__", ".", "_").Replace(h.capability()), h.body()
	if f.meta {
		path, name, arguments = "/meta", "invoke", fmt.Sprintf(`{"ref":%q,"input":%s}`, h.capability(), h.body())
	}
	meta := ""
	if h.declared != "" {
		meta = fmt.Sprintf(`"ecotone/classification":%q`, h.declared)
	}
	r := post(w.g, path, w.sessions[h.session()].Token, older("1", name, arguments, meta), olderVersion...)
	e := ended{said: string(r.Body)}
	if e.code = r.Code(); e.code != "" { // it was no message to begin with
		e.row = recorded(w.g, auditIDOf(r.Body), e.code)
		return e
	}
	var m struct {
		Result *struct {
			IsError bool
			Meta    struct {
				Invocation string          `json:"ecotone/invocation"`
				Denial     json.RawMessage `json:"ecotone/denial"`
			} `json:"_meta"`
		}
		Error *struct{ Data json.RawMessage }
	}
	r.JSON(&m)
	refusal := json.RawMessage(nil)
	switch {
	case m.Error != nil:
		refusal = m.Error.Data
	case m.Result == nil:
		t.Fatalf("neither a result nor an error: %s", r.Body)
	case m.Result.IsError:
		refusal = m.Result.Meta.Denial
	default:
		e.row = rowByID(w.g, m.Result.Meta.Invocation)
		return e
	}
	var d struct{ Code abi.Code }
	if err := json.Unmarshal(refusal, &d); err != nil || d.Code == "" {
		t.Fatalf("a refusal without a code: %s", r.Body)
	}
	e.code = d.Code
	e.row = recorded(w.g, auditIDOf(refusal), e.code)
	return e
}

// auditIDOf is where a refusal is on record; of what waits, its invocation.
func auditIDOf(refusal []byte) string {
	var d struct{ AuditID, InvocationID string }
	_ = json.Unmarshal(refusal, &d)
	if d.AuditID == "" {
		return d.InvocationID
	}
	return d.AuditID
}

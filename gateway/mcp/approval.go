package mcp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// sameCall says what makes two calls the same: caller, capability, input and terms. It is a digest under the
// server's key, and says nothing of the input.
func (s *Server) sameCall(x *exchange, w *wanted) string {
	chosen, _ := json.Marshal(w.terms)
	return string(s.mac([]byte("call"), []byte(x.session), []byte(w.ref), canonical(w.input), chosen))
}

// canonical is a JSON value in one spelling: a client may send the same arguments in another order. What
// cannot be read is itself.
func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// A state is what a client carries from the answer that a call waits to the same call: the id of what waits,
// under a MAC with what makes the call the same. It is no secret, and of no use to anybody else or for
// anything else (S17).
func (s *Server) sealState(call, id string) string {
	return id + "." + base64.RawURLEncoding.EncodeToString(s.mac([]byte("state"), []byte(call), []byte(id)))
}

func (s *Server) openState(state, call string) (id string, ok bool) {
	id, tag, _ := strings.Cut(state, ".")
	got, err := base64.RawURLEncoding.DecodeString(tag)
	return id, err == nil && hmac.Equal(got, s.mac([]byte("state"), []byte(call), []byte(id)))
}

// approvalRequest is the id under which the client is asked to wait.
const approvalRequest = "approval"

// collect answers for a call that waited. A client that says its user would wait no longer is told how far it
// is; whatever the user says decides nothing. It is nil when nothing is known of what waited any more: it
// expired long ago.
func (s *Server) collect(c context.Context, x *exchange, req *sdk.CallToolRequest, w *wanted, call, id string) *sdk.CallToolResult {
	c, cancel := context.WithCancel(c)
	defer cancel()
	defer context.AfterFunc(x.http, cancel)() // who is gone waits for nothing
	a, final := s.o.Pipeline.Collect(c, x.request(), id)
	if final {
		s.waiting.remove(call, id)
	}
	if waits(a.Status) {
		return s.needsApproval(req, w, call, a)
	}
	if a.Problem != nil && a.Problem.Code == abi.CodeNotFound && a.Invocation == "" {
		return nil
	}
	return answered(a, w.typed, req.ProtocolVersion() >= versionStateless)
}

// needsApproval says that a person has to approve a call. A client that can, and has not been told to stop, is
// asked to come back with the state; any other has a result that says it, and makes the same call again.
func (s *Server) needsApproval(req *sdk.CallToolRequest, w *wanted, call string, a invoke.Answer) *sdk.CallToolResult {
	var say invoke.Waiting
	_ = json.Unmarshal(a.Output, &say) // it is the pipeline's own
	denial := waitingDenial(&say)
	if canAsk(req) && !declined(req) {
		return &sdk.CallToolResult{
			Meta:         sdk.Meta{metaInvocation: a.Invocation, metaDenial: denial},
			RequestState: s.sealState(call, a.Invocation),
			InputRequests: sdk.InputRequestMap{approvalRequest: &sdk.ElicitParams{
				Mode: "form",
				Message: "Calling " + string(say.Capability) + " in " + string(say.Environment) + " needs the approval of somebody who may approve it: " +
					say.Approval + ", until " + say.Expires.UTC().Format("2006-01-02 15:04 UTC") + ". Nothing said here approves it. Go on once it is approved.",
				RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
			}},
		}
	}
	return failed(sdk.Meta{metaInvocation: a.Invocation}, denial, w.typed)
}

// waitingDenial is a refusal like others, with what there is to wait for.
func waitingDenial(w *invoke.Waiting) json.RawMessage {
	d := struct {
		problem.Document
		Approval string    `json:"approval"`
		Expires  time.Time `json:"expires"`
	}{problem.From(abi.Errorf(w.Code, "an approver has to approve this call"), w.Invocation), w.Approval, w.Expires}
	d.Hint = "once it is approved, make the same call again; nothing is asked twice"
	d.Subject = &problem.Subject{Kind: w.Subject.Kind(), Ref: string(w.Subject)}
	d.Capability, d.Environment, d.Decision = string(w.Capability), string(w.Environment), "needs_approval"
	info, _ := w.Code.Info()
	d.Reasons, d.Suggestions = []problem.Reason{{Code: w.Code, Detail: info.Meaning}}, w.Suggestions
	raw, err := json.Marshal(d)
	if err != nil {
		return d.Encode()
	}
	return raw
}

// canAsk reports whether a client takes questions within its request.
func canAsk(req *sdk.CallToolRequest) bool {
	if req.ProtocolVersion() < versionStateless {
		return false
	}
	has := req.ClientCapabilities()
	return has != nil && has.Elicitation != nil && (has.Elicitation.Form != nil || has.Elicitation.URL == nil)
}

// declined reports whether the answer that comes with a call is that its user does not want to wait.
func declined(req *sdk.CallToolRequest) bool {
	r, ok := req.Params.InputResponses[approvalRequest].(*sdk.ElicitResult)
	return ok && r.Action != "accept"
}

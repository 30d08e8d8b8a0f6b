package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// The members of _meta that are the gateway's own.
const (
	metaPrefix           = "ecotone/"
	metaInvocation       = metaPrefix + "invocation"
	metaClassification   = metaPrefix + "classification"
	metaFuel             = metaPrefix + "fuel"
	metaReplacedBy       = metaPrefix + "replacedBy"
	metaDenial           = metaPrefix + "denial"
	metaCapability       = metaPrefix + "capability"
	metaDeadline         = metaPrefix + "deadlineMs"
	metaDeclassification = metaPrefix + "declassification"
)

// terms are the parts of a call that a caller may choose beside the input: what the data plane takes in headers.
type terms struct {
	Classification   *string `json:"classification,omitempty"`
	DeadlineMS       *int64  `json:"deadlineMs,omitempty"`
	Declassification *string `json:"declassification,omitempty"`
}

// termsOf reads them from _meta. A member of the gateway's that is not known is refused: it would be thought
// to do something, as an environment would (X27).
func termsOf(meta sdk.Meta) (t terms, refused *abi.Error) {
	for key, v := range meta {
		if !strings.HasPrefix(key, metaPrefix) {
			continue
		}
		text, isText := v.(string)
		number, isNumber := v.(float64)
		switch {
		case key == metaClassification && isText:
			t.Classification = &text
		case key == metaDeclassification && isText:
			t.Declassification = &text
		case key == metaDeadline && isNumber && number == math.Trunc(number) && math.Abs(number) <= 1<<53:
			ms := int64(number)
			t.DeadlineMS = &ms
		default:
			return t, abi.Errorf(abi.CodeInvalidRequest, "_meta has a member %s that is not known, or not of its type", abi.Quote(key)).At("/params/_meta").
				WithHint("a call takes " + metaClassification + ", " + metaDeadline + " and " + metaDeclassification + "; the environment comes from the session")
		}
	}
	return t, nil
}

func (t *terms) apply(r *invoke.Request) {
	if t.Classification != nil {
		r.Classification, r.HasClassification = *t.Classification, true
	}
	if t.DeadlineMS != nil {
		r.DeadlineMS, r.HasDeadline = strconv.FormatInt(*t.DeadlineMS, 10), true
	}
	if t.Declassification != nil {
		r.Declassification, r.HasDeclassification = *t.Declassification, true
	}
}

// wanted is one invocation, by whatever tool.
type wanted struct {
	ref   string
	input json.RawMessage
	terms terms
	typed bool // the tool says what its structured content is
}

// invocation is what the pipeline is asked for it.
func (x *exchange) invocation(w *wanted) invoke.Request {
	r := x.request()
	r.Ref = w.ref
	if r.Input = bytes.Clone(w.input); len(r.Input) == 0 {
		r.Input = []byte(`{}`) // arguments may be left out where there are none
	}
	w.terms.apply(&r)
	return r
}

// invoke invokes, or answers for the same call that waited for an approver.
func (s *Server) invoke(c context.Context, x *exchange, req *sdk.CallToolRequest, w wanted) (*sdk.CallToolResult, error) {
	newer := req.ProtocolVersion() >= versionStateless
	call := s.sameCall(x, &w)
	if state := req.Params.RequestState; state != "" {
		id, ok := s.openState(state, call)
		if !ok {
			return nil, s.unusable(c, x, abi.Errorf(abi.CodeInvalidRequest, "the requestState is not one of this call").
				WithHint("it is of one caller, one capability and one input; make the call without it"))
		}
		if res := s.collect(c, x, req, &w, call, id); res != nil {
			return res, nil
		}
	} else if id, known := s.waiting.find(call); known {
		if res := s.collect(c, x, req, &w, call, id); res != nil {
			return res, nil
		}
	}
	a := s.o.Pipeline.Invoke(c, x.invocation(&w))
	if waits(a.Status) {
		s.waiting.add(call, a.Invocation)
		return s.needsApproval(req, &w, call, a), nil
	}
	return answered(a, w.typed, newer), nil
}

// answered is an answer as the result of a tool.
func answered(a invoke.Answer, typed, newer bool) *sdk.CallToolResult {
	meta := sdk.Meta{}
	if a.Invocation != "" {
		meta[metaInvocation] = a.Invocation
	}
	if a.Label.Valid() {
		meta[metaClassification] = a.Label.String()
	}
	if a.Fuel > 0 {
		meta[metaFuel] = a.Fuel
	}
	if a.ReplacedBy != "" {
		meta[metaReplacedBy] = a.ReplacedBy
	}
	if a.Problem != nil {
		return denied(meta, a.Problem, typed)
	}
	return said(meta, a.Output, newer)
}

// said is a result that is one JSON value, as text and structured. The older version of the protocol has only
// objects for structured content.
func said(meta sdk.Meta, value json.RawMessage, newer bool) *sdk.CallToolResult {
	res := &sdk.CallToolResult{Meta: meta, Content: []sdk.Content{&sdk.TextContent{Text: string(value)}}}
	if newer || bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{")) {
		res.StructuredContent = value
	}
	return res
}

// denied is a refusal as a result: for the model as text, for a program in _meta. It is the structured content
// too where the tool does not say that this is something else: clients hold it to what the tool says.
func denied(meta sdk.Meta, d *problem.Document, typed bool) *sdk.CallToolResult {
	raw := json.RawMessage(bytes.TrimSpace(d.Encode()))
	return failed(meta, raw, typed)
}

func failed(meta sdk.Meta, raw json.RawMessage, typed bool) *sdk.CallToolResult {
	if meta == nil {
		meta = sdk.Meta{}
	}
	meta[metaDenial] = raw
	res := &sdk.CallToolResult{Meta: meta, IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(raw)}}}
	if !typed {
		res.StructuredContent = raw
	}
	return res
}

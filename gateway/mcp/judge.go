package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// stepsMax bounds a plan. Each step is a question that counts.
const stepsMax = 20

// verdict is what an invocation would be answered with.
type verdict struct {
	AuditID     string               `json:"auditId"`
	Ref         abi.CapabilityRef    `json:"ref"`
	Decision    string               `json:"decision"`
	Code        abi.Code             `json:"code,omitempty"`
	Label       abi.Classification   `json:"label,omitzero"`
	Ceiling     abi.Classification   `json:"ceiling,omitzero"`
	ReplacedBy  abi.CapabilityRef    `json:"replacedBy,omitempty"`
	Reasons     []problem.Reason     `json:"reasons,omitempty"`
	Suggestions []problem.Suggestion `json:"suggestions,omitempty"`
}

// ask has the pipeline judge what is named.
func (s *Server) ask(c context.Context, x *exchange, n *namedCall) (*invoke.Explanation, *refusal) {
	if why := n.check(); why != nil {
		return nil, because(why)
	}
	w := n.wanted()
	e, refused := s.o.Pipeline.Judge(c, x.invocation(&w))
	if refused != nil {
		return nil, &refusal{told: refused.Problem}
	}
	return e, nil
}

// verdictOf is the short form of an explanation.
func verdictOf(e *invoke.Explanation) verdict {
	v := verdict{
		AuditID: e.AuditID, Ref: e.Capability, Decision: e.Decision, Code: e.Code, Label: e.Label, Ceiling: e.Ceiling, ReplacedBy: e.ReplacedBy, Suggestions: e.Suggestions,
	}
	for _, check := range e.Checks {
		if check.State == gate.Failed {
			info, _ := check.Code.Info()
			v.Reasons = append(v.Reasons, problem.Reason{Code: check.Code, Detail: info.Meaning})
		}
	}
	return v
}

// preflight judges one invocation.
func preflight(s *Server, c context.Context, x *exchange, in *namedCall) (any, *refusal) {
	e, refused := s.ask(c, x, in)
	if refused != nil {
		return nil, refused
	}
	return verdictOf(e), nil
}

type explainArguments struct {
	Invocation string `json:"invocation,omitempty"`
	namedCall
}

// explain shows every check of what is named, or an earlier invocation of the session's own.
func explain(s *Server, c context.Context, x *exchange, in *explainArguments) (any, *refusal) {
	if in.Invocation == "" {
		return s.ask(c, x, &in.namedCall)
	}
	if in.Ref != "" || len(in.Input) > 0 {
		return nil, because(abi.Errorf(abi.CodeInvalidRequest, "either an invocation is explained, or a ref with an input"))
	}
	a := s.o.Pipeline.Invocation(c, x.request(), in.Invocation)
	if a.Problem != nil {
		return nil, &refusal{told: a.Problem}
	}
	return json.RawMessage(a.Output), nil
}

type planArguments struct {
	Steps []namedCall `json:"steps"`
}

type planned struct {
	// Runnable is whether every step would be allowed.
	Runnable  bool      `json:"runnable"`
	Approvals int       `json:"approvals"` // steps that wait for a person
	Steps     []verdict `json:"steps"`
}

// plan judges invocations that follow each other. What one answers raises the label that the next begins
// with, as it would the session's mark: by what the capability declares of its output, the least it will be.
func plan(s *Server, c context.Context, x *exchange, in *planArguments) (any, *refusal) {
	if len(in.Steps) == 0 || len(in.Steps) > stepsMax {
		return nil, because(abi.Errorf(abi.CodeInvalidRequest, "a plan has from 1 to %d steps", stepsMax).At("/steps"))
	}
	all, refused := s.o.Pipeline.List(c, x.request())
	if refused != nil {
		return nil, &refusal{told: refused}
	}
	out := planned{Runnable: true, Steps: []verdict{}}
	carried := abi.Public
	for i := range in.Steps {
		step := &in.Steps[i]
		if step.Classification == nil && carried > abi.Public {
			text := carried.String()
			step.Classification = &text
		} else if step.Classification != nil {
			if declared, err := abi.ParseClassification(*step.Classification); err == nil && carried > declared {
				*step.Classification = carried.String()
			}
		}
		e, refused := s.ask(c, x, step)
		if refused != nil {
			return nil, refused
		}
		v := verdictOf(e)
		out.Steps = append(out.Steps, v)
		out.Runnable = out.Runnable && v.Decision == gate.Allow.String()
		if v.Decision == gate.Deny.String() {
			continue // it answers nothing
		}
		if v.Decision == gate.NeedsApproval.String() {
			out.Approvals++
		}
		if k := slices.IndexFunc(all, func(c invoke.Capability) bool { return c.Ref == v.Ref }); k >= 0 {
			carried = abi.Join(carried, abi.Join(v.Label, all[k].OutputClassification))
		}
	}
	return out, nil
}

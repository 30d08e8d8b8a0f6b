package invoke

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// Waiting is the answer to an invocation that needs a person's word first. It is no problem document: nothing
// has been refused.
type Waiting struct {
	Invocation  string               `json:"invocationId"`
	Status      string               `json:"status"`
	Code        abi.Code             `json:"code"`
	Approval    string               `json:"approval"`
	Expires     time.Time            `json:"expires"`
	Subject     abi.Subject          `json:"subject"`
	Capability  abi.CapabilityRef    `json:"capability"`
	Environment abi.EnvironmentRef   `json:"environment"`
	Label       abi.Classification   `json:"label"`
	Suggestions []problem.Suggestion `json:"suggestions,omitempty"`
}

// await puts an invocation before people, durably, and answers where to look (X42). Nothing is run, and what
// nobody could be shown whole is refused here and now (S17).
func (c *attempt) await(ctx context.Context) Answer {
	if refused := approval.Check(c.input); refused != nil {
		return c.deny(ctx, refused)
	}
	files, label, err := c.p.named(ctx, c.facts.Workspace, c.decision.Ceiling, c.input)
	if err != nil {
		return c.deny(ctx, abi.AsError(err))
	}
	digest, err := c.p.o.Audit.Digest(c.facts.Org, c.input)
	if err != nil {
		return c.p.broken(c.id, err)
	}
	if err := c.recordDecision(ctx, nil, true); err != nil {
		return c.p.broken(c.id, err)
	}
	r, err := c.p.o.Policy.RequestApproval(context.WithoutCancel(ctx), policy.Ask{
		Request: approval.Request{
			ID: c.id, Org: c.facts.Org, Kind: approval.Invocation, Subject: c.facts.Subject, User: c.facts.User, Requester: c.facts.Client,
			Label: abi.Join(c.decision.Start, label), Capability: c.facts.Capability, Biome: c.decision.Biome,
			Context:     c.context(),
			InputDigest: digest, InputBytes: int64(len(c.input)), Expires: c.lasts(),
		},
		Facts: c.facts, Files: files, Sealed: c.p.o.Box.Seal(c.facts.Org, c.id, approval.Input, c.input),
	})
	if err != nil {
		return c.unasked(ctx, abi.AsError(err))
	}
	w := Waiting{
		Invocation: c.id, Status: gate.NeedsApproval.String(), Code: abi.CodeApprovalRequired, Approval: r.ID, Expires: r.Expires,
		Subject: r.Subject, Capability: r.Capability, Environment: r.Context.Environment, Label: r.Label, Suggestions: c.suggestions(),
	}
	a := jsonAnswer(http.StatusAccepted, w)
	a.Invocation, a.Location = c.id, "/v1/invocations/"+c.id
	return a
}

// context is what the attempt takes from its session and its request.
func (c *attempt) context() approval.Context {
	return approval.Context{
		Session: c.facts.Session, Space: c.facts.Space, Environment: c.facts.Environment, Workspace: c.facts.Workspace,
		Clearance: c.facts.Clearance, Declared: c.terms.declared, Origin: c.face, Trace: c.terms.trace.id,
	}
}

// lasts is until when it may wait: no longer than the session that asks.
func (c *attempt) lasts() time.Time {
	until := c.p.o.Policy.Now().Add(approval.DefaultLife)
	if end := c.session.Expires; end.Before(until) {
		return end
	}
	return until
}

// unasked answers an invocation that nobody could be asked about, after its row said that somebody would be.
func (c *attempt) unasked(ctx context.Context, why *abi.Error) Answer {
	err := c.append(ctx, audit.Resolved{Resolution: audit.ResolvedRefused, Code: why.Code}, true)
	if err != nil {
		return c.p.broken(c.id, err)
	}
	d := problem.From(why, c.id)
	return Answer{Invocation: c.id, Problem: &d}
}

// named are the versions of the files that an input names, with the join of their labels: any string in it
// that is the path of a file of the session's workspace may be meant as one. Where there is no file, that
// is a version too, but for the names of members, which are rarely paths.
func (p *Pipeline) named(ctx context.Context, workspace string, ceiling abi.Classification, input []byte) (map[string]string, abi.Classification, error) {
	if workspace == "" {
		return nil, abi.Public, nil
	}
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return nil, 0, abi.Errorf(abi.CodeInvalidJSON, "the input is not JSON: %w", err)
	}
	values, names := map[string]struct{}{}, map[string]struct{}{}
	collect(v, values, names)
	versions, label, err := p.o.Versions(ctx, workspace, ceiling, slices.Collect(maps.Keys(values)))
	if err != nil {
		return nil, 0, err
	}
	named, also, err := p.o.Versions(ctx, workspace, ceiling, slices.Collect(maps.Keys(names)))
	if err != nil {
		return nil, 0, err
	}
	label = abi.Join(label, also)
	for name, version := range named {
		if version != "" {
			versions[name] = version
		}
	}
	if len(versions) > approval.MaxFiles {
		return nil, 0, abi.Errorf(abi.CodeInputLimit, "the input has %d texts that may be paths; an approver is shown at most %d", len(versions), approval.MaxFiles)
	}
	if len(versions) == 0 {
		return nil, label, nil
	}
	return versions, label, nil
}

// collect adds every text in a JSON value: those that are values, and those that name members.
func collect(v any, values, names map[string]struct{}) {
	switch v := v.(type) {
	case string:
		values[v] = struct{}{}
	case []any:
		for _, e := range v {
			collect(e, values, names)
		}
	case map[string]any:
		for k, e := range v {
			names[k] = struct{}{}
			collect(e, values, names)
		}
	}
}

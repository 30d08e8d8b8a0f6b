package invoke

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Waited is how far an invocation is that needed a person's word. What came of its run is there until
// the approval expires: the output, or the problem document that its caller would have had.
type Waited struct {
	ID      string          `json:"id"`
	Status  approval.State  `json:"status"`
	Code    abi.Code        `json:"code,omitempty"`
	Expires time.Time       `json:"expires"`
	Changed []string        `json:"changed,omitempty"` // what voided it
	Output  json.RawMessage `json:"output,omitempty"`
	Problem json.RawMessage `json:"problem,omitempty"`
}

// Input is what a request for an approval asks about, or NOT_FOUND once it has expired.
func (p *Pipeline) Input(ctx context.Context, r *approval.Request) ([]byte, error) {
	sealed, err := p.o.Policy.Kept(ctx, r.Org, r.ID, approval.Input)
	if err != nil {
		return nil, err
	}
	return p.o.Box.Open(r.Org, r.ID, approval.Input, sealed)
}

// waited says what came of waiting, as far as the row is shown, and how sensitive that is. It is nil for what
// nobody was asked about.
func (p *Pipeline) waited(ctx context.Context, s *session.Session, row *audit.Row) (*Waited, abi.Classification, error) {
	of, err := p.o.Policy.Standing(ctx, s.Org, row.ID)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return nil, abi.Public, nil
	}
	if err != nil {
		return nil, 0, err
	}
	now := p.o.Policy.Now()
	w := &Waited{ID: row.ID, Status: of.State(now), Expires: of.Request.Expires}
	label := abi.Public
	switch {
	case of.Result != nil && of.Result.Code == abi.CodeClassificationFlow:
		w.Code = of.Result.Code // and that is all: the answer to a withheld one is constant
		return w, label, nil
	case of.Result == nil, row.Withheld:
		return w, label, nil
	case of.Result.State == approval.Stale: // a file that changed is one
		label = of.Request.Label
	}
	w.Code, w.Changed = of.Result.Code, of.Result.Changed
	if row.Ended == nil || !now.Before(of.Request.Expires) {
		return w, label, nil
	}
	sealed, err := p.o.Policy.Kept(ctx, s.Org, row.ID, approval.Output)
	if err != nil {
		return w, label, nil // it was too large to be kept, or the process died before it was
	}
	raw, err := p.o.Box.Open(s.Org, row.ID, approval.Output, sealed)
	var f fetched
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	w.Output, w.Problem = f.Output, f.Problem
	return w, label, err
}

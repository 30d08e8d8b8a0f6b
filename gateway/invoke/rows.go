package invoke

import (
	"context"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// rows answers audit_query: the one door of the platform's reach to the audit. It shows rows
// of the invocation's own organisation only, each as the invocation's ceiling allows.
type rows struct{ log *audit.Log }

// query is the document of audit_query.
type query struct {
	Invocation string            `json:"invocation,omitempty"`
	Capability abi.CapabilityRef `json:"capability,omitempty"`
	After      string            `json:"after,omitempty"`
	Limit      int               `json:"limit,omitempty"`
}

// rowsLabel is the least label of audit rows: who did what in an organisation is not public.
const rowsLabel = abi.Internal

// Query implements [boundary.Querier].
func (q rows) Query(ctx context.Context, s boundary.Scope, doc json.RawMessage) (boundary.Result, error) {
	var in query
	if err := abi.DecodeStrict(doc, &in); err != nil {
		return boundary.Result{}, err
	}
	if err := s.Flow.Observe(rowsLabel); err != nil {
		return boundary.Result{}, err
	}
	spec := s.Authority.Spec()
	page, err := q.log.Rows(ctx, spec.Org, audit.Query{
		Invocation: in.Invocation, Capability: in.Capability, After: in.After, Limit: min(max(in.Limit, 0), audit.MaxPage),
	})
	if err != nil {
		return boundary.Result{}, err
	}
	for i, r := range page.Rows {
		page.Rows[i] = r.View(spec.Ceiling)
		if err := s.Flow.Observe(page.Rows[i].Label()); err != nil {
			return boundary.Result{}, err
		}
	}
	body, err := json.Marshal(page)
	if err != nil {
		return boundary.Result{}, err
	}
	return boundary.Result{Body: body, Target: "org:" + spec.Org}, nil
}

var _ boundary.Querier = rows{}

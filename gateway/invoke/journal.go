package invoke

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// journal writes what the boundary announces into the audit log (S8). It holds no state.
type journal struct{ log *audit.Log }

// Started implements [boundary.Journal].
func (j journal) Started(ctx context.Context, a *authority.Authority) error {
	_, err := j.log.Append(ctx, event(a, audit.Started{}))
	return err
}

// Announce implements [boundary.Journal].
func (j journal) Announce(ctx context.Context, a *authority.Authority, line int, function, target string) error {
	_, err := j.log.Append(ctx, event(a, audit.Effect{Line: line, Function: function, Target: target}))
	return err
}

// Closed implements [boundary.Journal].
func (j journal) Closed(ctx context.Context, a *authority.Authority, line int, code abi.Code) error {
	return j.log.AppendAsync(ctx, event(a, audit.EffectClosed{Line: line, Code: code}))
}

func event(a *authority.Authority, body audit.Body) audit.Event {
	return audit.Event{Org: a.Spec().Org, ID: a.Spec().Invocation, Body: body}
}

var _ boundary.Journal = journal{}

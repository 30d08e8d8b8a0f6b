package gate

import (
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// Lowering lets one invocation begin lower than its session's mark (S3): somebody who saw its input said
// that the input carries no more than To, whatever else the session was given. It lowers where that
// one invocation starts and nothing else: what it reads, the space's floor and the caller's own
// declaration raise it as ever, and the mark stays.
type Lowering struct {
	From abi.Classification // the mark then; one that has risen since is not lowered
	To   abi.Classification
	Sink string // [SinkOutput], or [SinkEndpoint] and a name: the one way out that was approved
}

// Sinks of a lowering.
const (
	SinkOutput   = "output"
	SinkEndpoint = "endpoint:"
)

// mark is what an invocation takes on of what its session was given.
func (f *Facts) mark() abi.Classification {
	if l := f.Lower; l != nil && f.Parent == nil && f.Mark <= l.From {
		return abi.Meet(f.Mark, l.To)
	}
	return f.Mark
}

// narrow leaves an authority the one sink, and what goes there: no file, no key, no child.
func (l *Lowering) narrow(spec *authority.Spec) {
	if l == nil {
		return
	}
	spec.Calls, spec.Resources = nil, append(spec.Resources, &glob.Set{})
	name, endpoint := strings.CutPrefix(l.Sink, SinkEndpoint)
	var kept []*egress.Endpoint
	for _, e := range spec.Endpoints {
		if endpoint && e.Name == name {
			kept = append(kept, e)
		}
	}
	spec.Endpoints = kept
}

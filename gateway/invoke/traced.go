package invoke

import (
	"regexp"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/span"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Tracer is told of every invocation that ended, children each for itself. It must not block, and keeps nothing
// of what it is given.
type Tracer interface{ Ended(i *span.Invocation) }

// traced is the trace that a caller belongs to.
type traced struct {
	id   string // 32 hex digits; "": none
	span string // 16 hex digits: who called; not handed to children, whose parent is the invocation
	not  bool   // the caller's trace is not recorded, and so none of this is
}

// traceparent is the W3C Trace Context header, version 00.
var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])$`)

// tracedBy reads a header: a malformed one starts no trace.
func tracedBy(header string) traced {
	m := traceparent.FindStringSubmatch(header)
	if m == nil || strings.Trim(m[1], "0") == "" || strings.Trim(m[2], "0") == "" {
		return traced{}
	}
	return traced{id: m[1], span: m[2], not: strings.Contains("02468ace", m[3])}
}

// child is the trace of what an invocation makes.
func (t traced) child() traced { return traced{id: t.id, not: t.not} }

// tell tells the tracer that the attempt ended, with what its caller was told. r is nil when nothing ran.
func (c *attempt) tell(code abi.Code, r *boundary.Receipt) {
	if c.p.o.Tracer == nil || c.terms.trace.not {
		return
	}
	i := span.Invocation{
		ID: c.id, Root: c.id, Trace: c.terms.trace.id, Span: c.terms.trace.span, Face: c.face,
		Environment: string(c.facts.Environment), Code: code,
	}
	if c.parent != nil {
		i.Parent, i.Root = c.parent.id, c.parent.outermost()
	}
	if c.decision.Biome != "" { // else the name is the caller's text
		i.Capability = string(c.facts.Capability)
	}
	if r != nil {
		i.Took = r.Took
	}
	if r != nil && code != abi.CodeClassificationFlow { // what is above who asked is not looked at (S6)
		for n := range r.Lines {
			l := &r.Lines[n]
			i.Calls = append(i.Calls, span.Call{Function: l.Function, Refused: l.Code != "", Start: l.Start, Took: l.Took})
		}
	}
	c.p.o.Tracer.Ended(&i)
}

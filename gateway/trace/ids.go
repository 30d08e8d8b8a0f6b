package trace

import (
	"context"
	"crypto/rand"

	api "go.opentelemetry.io/otel/trace"
)

// idsKey is where the id is that the next span is to have.
type idsKey struct{}

// named gives spans the ids that the context names, and others by chance. It implements the SDK's generator.
type named struct{}

// NewIDs implements [sdk.IDGenerator]: of a span that begins a trace.
func (n named) NewIDs(ctx context.Context) (t api.TraceID, s api.SpanID) {
	_, _ = rand.Read(t[:])
	return t, n.NewSpanID(ctx, t)
}

// NewSpanID implements [sdk.IDGenerator].
func (named) NewSpanID(ctx context.Context, _ api.TraceID) api.SpanID {
	s, _ := ctx.Value(idsKey{}).(api.SpanID)
	if !s.IsValid() {
		_, _ = rand.Read(s[:])
	}
	return s
}

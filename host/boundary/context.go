package boundary

import "context"

type contextKey struct{}

// With returns a context that carries inv to the host functions.
func With(ctx context.Context, inv *Invocation) context.Context {
	return context.WithValue(ctx, contextKey{}, inv)
}

// From returns the invocation a context carries, or nil.
func From(ctx context.Context) *Invocation {
	inv, _ := ctx.Value(contextKey{}).(*Invocation)
	return inv
}

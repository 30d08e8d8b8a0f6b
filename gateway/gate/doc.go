// Package gate decides whether a subject may invoke a capability, and makes the authority of
// an invocation that may.
//
// It promises that [Decide] is a pure function of an immutable [Snapshot] and of [Facts]:
// no I/O, no clock, no allocation; that an allow needs a grant and every ceiling, whatever is
// configured around them; and that nothing else in the program makes an authority. It imports
// no store, no HTTP and no engine, and refuses to know where policy comes from and how
// capabilities run.
//
// # What a refusal tells
//
// A capability that a subject holds no grant for, in any environment, is refused exactly as one
// that does not exist: MISSING_GRANT, and no other check is shown. Who holds a grant for it
// somewhere learns why it does not help here. In trusted-dev nothing is hidden, and a ref that
// nobody provides is CAPABILITY_UNKNOWN.
package gate

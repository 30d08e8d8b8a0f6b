// Package policy owns the records of who may do what, and the snapshot the gate decides over.
//
// It promises that a change is made in one order: the principal's role, the request itself,
// the audit event, one durable transaction, then the new snapshot, before the caller hears of
// it; that a change that fails anywhere leaves the snapshot as it was, or stale where it is not
// known whether it failed; that a restart finds the same snapshot, or notices that the store is not
// the one it was ([Mark]); and that its time never goes back. It refuses to know how decisions are
// made and how anyone reaches it.
//
// Locks: writer is taken before mu and before publishing, mu before the one that a session's mark is
// raised under. Snapshot, Invoker, Release and everything else an invocation needs take none of the
// first three.
package policy

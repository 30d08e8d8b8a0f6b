// Package invoke takes one invocation from request to answer. Follow [Pipeline.Invoke]: every
// invocation, a child included, goes through the same few steps, in this order.
//
//	request → session → gate → slot → authority → run → label → audit → answer
//
// It promises that nothing runs before its decision is in the audit's queue, that a denial is
// durable before it is answered, that an outcome is durable before its answer leaves, and that
// a receiver who is not cleared for what an invocation made gets one constant document (S6).
// It refuses to know how it was reached (fasthttp, a test, a guest) and how a decision, a host
// function or a store works.
package invoke

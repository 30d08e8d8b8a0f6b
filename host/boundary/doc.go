// Package boundary is where a guest's wish meets its authority: every host function is
// implemented here, and every call of one takes the same steps in the same order.
//
// The promise. Whatever a guest does goes through [Call], and Call
//
//  1. counts it and stops counting on an invocation that is over,
//  2. asks whether the authority still stands and whether there is time left, and takes the
//     function's price, for what goes in and what comes out as well (S10),
//  3. copies each argument out of guest memory once, bounded before it is copied (S7),
//  4. holds the function's reach to the authority's, though it was linked (S9),
//  5. checks the arguments and the budgets,
//  6. makes the intent durable before the first effect, and announces each external one (S8),
//  7. acts, through a service that checks the resource and moves the label,
//  8. closes what it announced and writes the receipt line.
//
// A refusal is an errno and never a trap: the guest may go on without (PF-H13). A guest goes
// on no further when its invocation is over: cancelled, revoked, past its deadline, out of fuel
// or past its call budget, ended by itself, or failed in the host. Then [Invocation.Over] says why and
// whoever runs the guest unwinds it.
//
// The package refuses to know the engine (memory is an interface), the decision (it holds an
// authority, and cannot make one), and where anything is stored (services do).
package boundary

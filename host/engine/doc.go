// Package engine runs guests: it links modules to the boundary, makes instances, and turns
// the many ways a guest can end into codes of the catalogue.
//
// The promise. A guest reaches nothing but boundary functions; those outside its invocation's
// link set are there as stubs that deny (S9). Only the goroutine that runs a guest closes or
// frees its instance, after the guest's call has returned (S1): cancelling, deadlines and
// revocation travel by context and are noticed in loop heads and host calls. No state
// survives an invocation: an instance is new ([Fresh]), or was put back byte for byte to what
// it was right after initialisation ([Pooled]), and what cannot be put back is not kept.
// Nothing here compiles a module.
//
// What the engine underneath does not bound, and this package therefore cannot before
// metering exists: a guest that burns time by calls alone is not interrupted; the call stack
// may take some 170 MB of host memory before it is a STACK_LIMIT; table.grow is bounded only by
// the maximum the module declares, so whoever loads a module sees to it that it declares one;
// and a single bulk instruction runs to its end.
package engine

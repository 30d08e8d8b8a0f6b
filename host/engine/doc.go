// Package engine runs guests: it links modules to the boundary, makes instances, and turns
// the many ways a guest can end into codes of the catalogue.
//
// The promise. A guest reaches nothing but boundary functions; those outside its invocation's
// link set are there as stubs that deny (S9). Only the goroutine that runs a guest closes or
// frees its instance, after the guest's call has returned (S1): cancelling, deadlines and
// revocation travel by context and authority, and are noticed when the guest asks for fuel and in
// host calls. Modules are metered ([meter.Rewrite]) before they come here, so that a guest asks
// for fuel after a bounded amount of work, whatever it is made of, and its call frames are
// bounded. No state survives an invocation: an instance is new ([Fresh]), or was put back byte
// for byte to what it was right after initialisation ([Pooled]), and what cannot be put back is
// not kept. Nothing here compiles a module.
package engine

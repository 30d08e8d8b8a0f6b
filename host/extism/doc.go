// Package extism is the interface that Extism plug-ins were written for, over the boundary: the functions
// of [abi.ExtismFunctions], and what becomes of a plug-in's output and error.
//
// The promise. A plug-in sees what it sees in its SDK, and reaches what a biome reaches: variables are
// keys of the biome below extism/var/, requests are http_fetch under the same rules, configuration is
// the install grant's. Nothing else is kept from one invocation to the next (PF-E2): the memory that it
// shares with the host begins empty each time and is gone with the invocation.
//
// The interface has no way to say no. Where a biome is refused with an errno, a plug-in ends, with the
// code that the errno stands for: what its SDK does there is a trap, and an empty value in its place
// would be taken for the real one. Absent things, which the interface can say, are absent.
//
// The package refuses to know the engine and the services. Everything in it belongs to the goroutine
// that runs the guest.
package extism

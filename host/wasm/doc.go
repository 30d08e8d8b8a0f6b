// Package wasm reads the structure of WebAssembly core modules that nobody trusts.
//
// It promises that [Read] bounds every count by the bytes that remain and by the limits
// before anything is allocated or skipped, that its memory is at most [MaxExpansion] times
// the module's size plus a constant, that its time is linear in the size, and that it lists
// every problem it can find, with the offset of each. It accepts WebAssembly 2.0 as the
// engine is configured for it and refuses every other proposal by name. It checks every
// index against its space (S2), so that nothing a later pass adds to a module can make an
// index valid that was not. Where the engine and the specification read the same bytes
// differently, the bytes are refused.
//
// It refuses to know what a biome is, which imports are allowed and how a module is run.
// Types of instructions are not checked here: the engine's validator does that, in the
// confined child, on the same original bytes.
package wasm

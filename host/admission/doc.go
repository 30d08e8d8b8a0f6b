// Package admission inspects an uploaded module and says everything that is wrong with it.
//
// It promises that [Inspector.Inspect] is pure: bytes in, a report out, no clock, no disk,
// nothing run. A report without problems means that the structure of the module is sound and
// within the limits, that it imports nothing but host functions of the ABI's table at or
// below the reach its manifest declares and the WASI subset, that its exports are what the
// manifest names, and that the manifest is valid. The report lists all problems at once,
// each with a code, a byte offset and, where there is one, what to do about it.
//
// It refuses to know who uploads, what any organisation allows, and what the module does
// when it runs: types of instructions are checked by the validator in the confined child,
// behaviour by the probe.
package admission

package wasm

import "github.com/ecotone-dev/ecotone/abi"

// Read reads the structure of a module. It always returns every problem it found, up to
// [MaxProblems], in the order of the sections; the module is complete, and fit to be relied
// on, only when there are none. It is nil when data is not a core module at all or is larger
// than [abi.LimitModuleBytes]. Read keeps no reference to data and is safe for concurrent use.
func Read(data []byte, limits abi.Limits) (*Module, []Problem) {
	panic("unfinished")
}

// Package hostile is a collection of modules that try what they should not, with what must
// become of each. One table serves every layer: the structural reader and the inspection
// refuse the rows of the upload stage, the trial run at admission those of the probe stage,
// and everything that runs modules is held to the rows of the invoke stage.
//
// Small modules are assembled from the .wat beside them (see gen); large and malformed ones
// are made by [Module.Bytes] when asked for. The package is for tests only.
package hostile

import (
	"embed"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/testdata/hostile/internal/manifest"
)

//go:embed *.wasm feat/*.wasm
var assembled embed.FS

// Stage says by when a module must be caught.
type Stage string

const (
	Upload Stage = "upload" // by reading it: before anything of it runs
	Probe  Stage = "probe"  // at upload too, but only by instantiating and initialising it
	Invoke Stage = "invoke" // it is admitted, and each call ends as [Module.Calls] says
)

// Step is one invocation and how it must end: with Code, or well with Output.
type Step struct {
	Input  string // JSON; "" is {}
	Code   abi.Code
	Output string // exact bytes, when Code is ""
}

// Module is one row.
type Module struct {
	Name  string // as in the description of what modules will try, without .wasm
	Stage Stage
	// Want is a code that must be among the problems of the upload or probe stage.
	Want abi.Code
	// Calls are to be made in this order, each as an invocation of its own, in a session with a
	// workspace and with the default limits of an environment.
	Calls []Step
	// NeedsMetering marks modules that nothing but metered fuel can stop: without it they hold
	// a thread, and with the collector the process, for longer than the universe is old.
	NeedsMetering bool
	// NeedsTableBound marks modules that take host memory through tables unless
	// wasm.BoundTables was applied.
	NeedsTableBound bool

	build func() []byte
}

// Bytes returns the module, manifest included where it has one.
func (m Module) Bytes() []byte {
	if m.build != nil {
		return m.build()
	}
	b, err := assembled.ReadFile(m.Name + ".wasm")
	if err != nil {
		panic("hostile: " + m.Name + " is in the table and not in the folder; run the generator")
	}
	return b
}

// Ref is the capability to invoke.
func (m Module) Ref() abi.CapabilityRef { return manifest.Ref(m.Name) }

// Biome is the name of the biome in the manifest.
func (m Module) Biome() string { return manifest.Name(m.Name) }

// Modules returns every row, in a fixed order.
func Modules() []Module {
	return slices.Concat(assembledRows, featureRows, generatedRows, manifestRows, indexRows)
}

// At returns the rows of one stage.
func At(stage Stage) []Module {
	return slices.DeleteFunc(Modules(), func(m Module) bool { return m.Stage != stage })
}

// Named returns one row; it panics when there is none.
func Named(name string) Module {
	all := Modules()
	i := slices.IndexFunc(all, func(m Module) bool { return m.Name == name })
	if i < 0 {
		panic("hostile: no module " + name)
	}
	return all[i]
}

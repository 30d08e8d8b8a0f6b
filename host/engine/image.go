package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Image is one compiled module of one organisation, ready to be instantiated. It has an
// engine runtime of its own (S11) and is safe for concurrent use.
type Image struct {
	runtime      wazero.Runtime
	compiled     wazero.CompiledModule
	initialSize  int64    // bytes of memory an instance begins with
	mostSize     int64    // bytes of memory the module allows itself
	initializers []string // exports, in their order
	face         abi.Face
	provides     map[string]bool // exports that may serve a capability

	keeping Keeping
	learned atomic.Pointer[string]   // why instances are not kept, found out by running
	shelves atomic.Pointer[[]*shelf] // of pools, changed under mu

	mu    sync.Mutex
	links map[LinkSet]links // made when first used
}

const (
	exportMemory     = abi.ExportMemory
	exportInitialize = abi.ExportInitialize
)

// NewImage takes over a runtime and a module compiled in it, also when it fails: then it
// closes the runtime. The module was metered for [StackBytes], and built for a face. Admission has checked what is checked here again, because an engine
// that is handed anything else would find out in the middle of a run.
func NewImage(ctx context.Context, r wazero.Runtime, compiled wazero.CompiledModule, face abi.Face) (*Image, error) {
	row, ok := face.Info()
	if !ok || faces[row.Face] == nil {
		_ = r.Close(ctx)
		return nil, abi.Errorf(abi.CodeInternal, "the module is for an interface that is not linked here")
	}
	if !slices.ContainsFunc(compiled.ImportedFunctions(), isRefuel) {
		_ = r.Close(ctx)
		return nil, abi.Errorf(abi.CodeInternal, "the module is not metered, so nothing would end it")
	}
	memory, ok := compiled.ExportedMemories()[exportMemory]
	if !ok {
		_ = r.Close(ctx)
		return nil, abi.Errorf(abi.CodeExportMissing, "the module exports no memory named %q", exportMemory)
	}
	functions := compiled.ExportedFunctions()
	provides := make(map[string]bool)
	for name, f := range functions {
		provides[name] = name != exportInitialize && len(f.ParamTypes()) == 0 &&
			slices.ContainsFunc(row.Results, func(r []abi.ValueType) bool { return slices.Equal(f.ResultTypes(), valueTypes(r)) })
	}
	most := int64(wasm.MaxPages) << 16
	if pages, ok := memory.Max(); ok {
		most = int64(pages) << 16
	}
	return &Image{
		runtime:      r,
		compiled:     compiled,
		initialSize:  int64(memory.Min()) << 16,
		mostSize:     most,
		initializers: initializersOf(row, functions),
		face:         row.Face,
		provides:     provides,
		links:        make(map[LinkSet]links),
	}, nil
}

// initializersOf are the exports that initialise a module: of a face that knows several, those that its own
// hosts call. A Haskell runtime is started after what it was linked with; otherwise the first one does it.
func initializersOf(face *abi.FaceInfo, functions map[string]api.FunctionDefinition) (out []string) {
	known := face.Initializers
	if known == nil {
		known = []string{exportInitialize}
	}
	for _, name := range known {
		if functions[name] != nil && (name == abi.ExportHaskell || len(out) == 0) {
			out = append(out, name)
		}
	}
	return out
}

func isRefuel(f api.FunctionDefinition) bool {
	module, name, imported := f.Import()
	return imported && module == meter.ImportModule && name == meter.ImportRefuel
}

// Provides reports whether the module exports a capability under this name: a function that takes
// nothing and returns what its face has capabilities return.
func (i *Image) Provides(export string) bool { return i.provides[export] }

// fits refuses an image that begins with more memory than the limit. A larger maximum does
// no harm: growing past the limit is refused when it is tried (PF-D19).
func (i *Image) fits(limits *abi.Limits) *abi.Error {
	if most := limits.Get(abi.LimitMemoryBytes); i.initialSize > most {
		return abi.Errorf(abi.CodeMemoryLimit, "the module begins with %d bytes of memory, this environment allows %d", i.initialSize, most)
	}
	return nil
}

// linked returns the host modules of a link set.
func (i *Image) linked(ctx context.Context, set LinkSet) (links, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.links[set]; l != nil {
		return l, nil
	}
	l, err := newLinks(context.WithoutCancel(ctx), i.runtime, i.face, set)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the host functions do not link: %w", err)
	}
	i.links[set] = l
	return l, nil
}

// addShelf lists a pool's shelf, unless there are too many.
func (i *Image) addShelf(s *shelf) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []*shelf
	if old := i.shelves.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if len(all) >= maxShelves {
		return false
	}
	all = append(all, s)
	i.shelves.Store(&all)
	return true
}

func (i *Image) removeShelf(s *shelf) {
	i.mu.Lock()
	defer i.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(*i.shelves.Load()), func(other *shelf) bool { return other == s })
	i.shelves.Store(&left)
}

// Close closes the idle instances that pools have of the image and frees its code. No guest of
// the image may be running.
func (i *Image) Close(ctx context.Context) error {
	if all := i.shelves.Load(); all != nil {
		for _, s := range *all {
			s.pool.drop(s)
		}
	}
	return i.runtime.Close(ctx)
}

package meter

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Names of what a rewritten module has more than its original. All begin with
// [abi.ReservedPrefix], which no upload may use, and none is in the function table.
const (
	ImportModule   = abi.ReservedPrefix + "meter"
	ImportRefuel   = "refuel"   // () -> (): fuel is below zero
	ImportOverflow = "overflow" // () -> (): depth is below zero

	ExportFuel  = abi.ReservedPrefix + "fuel"  // mutable i64
	ExportDepth = abi.ReservedPrefix + "depth" // mutable i64

	// ExportGlobal and a decimal index begin the names of the guest's own mutable globals.
	ExportGlobal = abi.ReservedPrefix + "global_"
)

// PieceBytes is how much of a memory one instruction of a rewritten module copies, fills or
// initialises at most.
const PieceBytes = 256 << 10

// Options say what becomes of a module.
type Options struct {
	// Exports are the names that stay, besides memory and _initialize. Others are dropped.
	Exports []string

	// StackBytes bounds the call frames of a guest together, as estimated: at least 64 KiB.
	StackBytes int64

	// MaxMemoryPages is what no memory the engine makes grows beyond; more is paid as an
	// attempt that fails. At most [wasm.MaxPages], which is also what 0 means.
	MaxMemoryPages uint32

	// ExportGlobals exports the guest's mutable number globals, so that an image can be put
	// back.
	ExportGlobals bool

	// Limits are those the original was read with. A rewritten module may have twice the
	// bytes, twice the body and twice the blocks.
	Limits abi.Limits
}

// Result is a rewritten module and what is known of it.
type Result struct {
	Module []byte

	// Fuel and Depth are the indices of the added globals. Fuel begins at 0: the first thing
	// a guest does is ask for some. Depth begins at StartDepth, and the host sets it back to
	// that before each call into an instance, since a call that was unwound returned nothing.
	Fuel, Depth uint32
	StartDepth  int64

	// Globals are the guest's own mutable globals that were exported.
	Globals []Global

	// Restorable says whether an instance is the sum of its memory and its mutable globals,
	// so that putting both back makes it as new (S12). Reasons say why not.
	Restorable bool
	Reasons    []Reason

	Stats Stats
}

// Global is a mutable global of the guest that was exported by the rewriting.
type Global struct {
	Index uint32
	Name  string
	Type  wasm.ValType
}

// Reason is one kind of instruction or definition that no image can hold.
type Reason struct {
	What   string `json:"what"`
	Count  int    `json:"count"`
	Offset uint32 `json:"offset"` // of the first, in the original
}

// Stats count what was done.
type Stats struct {
	Functions    int     `json:"functions"`
	Leaves       int     `json:"leaves"`      // small functions whose callers pay
	Accounted    int     `json:"accounted"`   // functions whose frames are accounted one by one
	Late         int     `json:"late"`        // of these, those that take depth before their first call
	Checks       int     `json:"checks"`      // places where fuel is taken and looked at
	Charges      int     `json:"charges"`     // places where fuel is taken only
	Unaccounted  int64   `json:"unaccounted"` // bytes: the deepest stack of frames that are not accounted
	MaxOverrun   uint64  `json:"maxOverrun"`  // fuel: what can be taken between two checks
	BytesIn      int     `json:"bytesIn"`     // without custom sections
	BytesOut     int     `json:"bytesOut"`
	CodeIn       int     `json:"codeIn"`
	CodeOut      int     `json:"codeOut"`
	MaxBodyBytes int     `json:"maxBodyBytes"`
	Growth       float64 `json:"growth"` // BytesOut / BytesIn
}

package boundary

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// Functions that are not Ecotone's own have no door of their own. What a face makes of them is in
// packages beside this one, and whatever touches anything outside the invocation goes through
// [Visit.Call], which is [Call]: counted, priced, asked for authority, reach, resources and labels,
// announced and listed, as if a native guest had made it. What is left to them is memory, the
// guest's own input and output, its log, its clock and its share of randomness.

// Door is one function of a face.
type Door struct {
	Name      string
	Signature abi.Signature // at most one result
	Price     abi.Price     // of the call itself; the KiB are those [Visit.Pay] is told of
	// Slot tells apart what the interfaces keep that a face is made of: see [Visit.Keep].
	Slot Slot
	// Constant: it answers every guest of every invocation the same and changes nothing but its
	// memory. Whose initialiser has asked only these may be frozen as it is (S13).
	Constant bool
	// Closed is what a guest sees of a call that is not made at all. It does not matter much: the
	// invocation is over then.
	Closed uint64
	// Open makes the call and returns its result as the engine wants it.
	Open func(context.Context, *Visit) uint64
}

// Slot names one of the places where a face keeps something.
type Slot uint8

const (
	SlotWASI   Slot = iota // of WASI, which other interfaces have beside their own
	SlotPlugin             // of a plug-in's interface
	numSlots
)

// Keeper is what a face keeps of one invocation, and only of that: it goes with it.
type Keeper interface {
	// End is called at most once, when the guest has ended by itself and not failed, while host
	// calls still work. An error is how the invocation ends.
	End(context.Context, *Visit) *abi.Error
}

// Visit is one call of a [Door], on the guest's goroutine. An invocation has one, which its calls
// use one after another: nobody keeps it, and a door's own calls are made before it answers.
type Visit struct {
	inv  *Invocation
	door *Door
	mem  Memory
	args []uint64
	at   time.Time // when it began
	word [8]byte   // on its way to the guest
}

// Foreign makes one call of a face's function and returns its raw result. The caller must look at
// [Invocation.Over] before it goes back into the guest.
func Foreign(ctx context.Context, inv *Invocation, door *Door, mem Memory, args []uint64) uint64 {
	at := inv.clock()
	if err := inv.ended(ctx, at); err != nil {
		inv.finish(err)
	}
	if inv.phase != PhaseInitialize && inv.phase != PhaseRun {
		inv.finish(abi.Errorf(abi.CodeInternal, "a call of %s outside a run", door.Name))
	}
	if inv.over != nil {
		return door.Closed
	}
	if inv.phase == PhaseInitialize && !door.Constant && !slices.Contains(inv.asked, door.Name) {
		inv.asked = append(inv.asked, door.Name)
	}
	if inv.pay(int64(door.Price.Base)) != nil {
		return door.Closed
	}
	v := &inv.visit
	*v = Visit{inv: inv, door: door, mem: mem, args: args, at: at}
	result := door.Closed
	inv.protect(door.Name, func() { result = door.Open(ctx, v) })
	return result
}

// Arg is the i-th argument as the unsigned 32-bit number it is.
func (v *Visit) Arg(i int) uint32 { return uint32(v.args[i]) }

// Arg64 is the i-th argument as the unsigned 64-bit number it is.
func (v *Visit) Arg64(i int) uint64 { return v.args[i] }

// Fits reports whether n bytes at ptr are the guest's.
func (v *Visit) Fits(ptr, n uint32) bool {
	_, ok := v.mem.Read(ptr, n)
	return ok
}

// View is n bytes of the guest's memory at ptr. It changes with the guest's memory: it is copied, or
// forgotten, before the guest runs again (S7).
func (v *Visit) View(ptr, n uint32) ([]byte, bool) { return v.mem.Read(ptr, n) }

// Copy takes n bytes out of the guest's memory, once. The caller has bounded n.
func (v *Visit) Copy(ptr, n uint32) ([]byte, bool) {
	view, ok := v.mem.Read(ptr, n)
	if !ok {
		return nil, false
	}
	return append(make([]byte, 0, len(view)), view...), true
}

// Put copies b to the guest's memory, or reports false and writes nothing.
func (v *Visit) Put(ptr uint32, b []byte) bool { return v.mem.Write(ptr, b) }

// Put32 is Put of a number in little-endian order, and Put64 is another.
func (v *Visit) Put32(ptr, n uint32) bool {
	binary.LittleEndian.PutUint32(v.word[:], n)
	return v.Put(ptr, v.word[:4])
}

// Put64 is Put of a number in little-endian order.
func (v *Visit) Put64(ptr uint32, n uint64) bool {
	binary.LittleEndian.PutUint64(v.word[:], n)
	return v.Put(ptr, v.word[:])
}

// Pay takes the door's price for n bytes, before they are moved; false says that the invocation is over.
func (v *Visit) Pay(n int64) bool { return v.inv.pay(kibs(n)*int64(v.door.Price.PerKiB)) == nil }

// Initializing reports whether it is the module's initialiser that calls: it has no authority, no
// input and no output, and what it is told may be kept for other invocations.
func (v *Visit) Initializing() bool { return v.inv.phase == PhaseInitialize }

// Spec is what the invocation may do. It must not be changed.
func (v *Visit) Spec() *authority.Spec { return v.inv.authority.Spec() }

// Limit is one of the limits that the invocation is held to.
func (v *Visit) Limit(l abi.Limit) int64 { return v.inv.limits.Get(l) }

// Kept is what [Visit.Keep] was last given in this invocation, or nil.
func (v *Visit) Kept() Keeper { return v.inv.keepers[v.door.Slot] }

// Keep keeps k until the end of the invocation.
func (v *Visit) Keep(k Keeper) { v.inv.keepers[v.door.Slot] = k }

// Fail ends the invocation; the first reason counts.
func (v *Visit) Fail(why *abi.Error) { v.inv.finish(why) }

// Over says why the guest must not run on, or nil.
func (v *Visit) Over() *abi.Error { return v.inv.over }

// Call makes a host call for the guest, as [Call] would if the guest had made it, and returns what it
// would see. Arguments are in the order of the function's parameters, a pointer and its length as
// one. What it leaves is in [Visit.Result].
func (v *Visit) Call(ctx context.Context, fn *abi.Function, args ...Argument) int64 {
	var mem segments
	raw := make([]uint64, 0, 2*len(args))
	for _, a := range args {
		if a.bytes == nil {
			raw = append(raw, a.word)
			continue
		}
		raw = append(raw, uint64(len(mem)), uint64(len(a.bytes)))
		mem = append(mem, a.bytes)
	}
	return Call(ctx, v.inv, fn, mem, raw)
}

// Argument is one of a host call that the host makes for a guest.
type Argument struct {
	bytes []byte
	word  uint64
}

// Bytes is an argument of a pointer and a length.
func Bytes(b []byte) Argument {
	if b == nil {
		b = []byte{}
	}
	return Argument{bytes: b}
}

// Text is an argument of a pointer and a length.
func Text(s string) Argument { return Bytes([]byte(s)) }

// Word is an argument that is a number.
func Word(n uint64) Argument { return Argument{word: n} }

// segments is the memory of a host call that the host makes: its arguments, one at each address.
type segments [][]byte

// Read implements [Memory].
func (s segments) Read(off, n uint32) ([]byte, bool) {
	if int64(off) >= int64(len(s)) || int64(n) > int64(len(s[off])) {
		return nil, false
	}
	return s[off][:n], true
}

// Write implements [Memory]: a host call that writes to memory has nothing to write to.
func (s segments) Write(uint32, []byte) bool { return false }

// Result is what the last host call left in the result register. The register's owner may not change it.
func (v *Visit) Result() (body []byte, meta json.RawMessage) {
	return v.inv.result.Body, v.inv.result.Meta
}

// Refused is [Invocation.Refused].
func (v *Visit) Refused() *abi.Error { return v.inv.Refused() }

// Settle ends the run of a guest that has returned: what its face keeps is concluded, while host calls
// still work. failure is what the engine saw so far.
func (inv *Invocation) Settle(ctx context.Context, failure *abi.Error) *abi.Error {
	if inv.keepers == [numSlots]Keeper{} || failure != nil || inv.over != nil || inv.phase != PhaseRun {
		return failure
	}
	err := inv.conclude(ctx)
	inv.account()
	inv.turn.Leave()
	if inv.over != nil {
		return inv.over
	}
	return err
}

// conclude asks the keepers to end, each at most once, until one of them fails.
func (inv *Invocation) conclude(ctx context.Context) (err *abi.Error) {
	keepers := inv.keepers
	inv.keepers = [numSlots]Keeper{}
	for slot, k := range keepers {
		if k == nil || err != nil {
			continue
		}
		v := &inv.visit
		*v = Visit{inv: inv, door: &endings[slot], at: inv.clock()}
		if fault := inv.protect(v.door.Name, func() { err = k.End(ctx, v) }); fault != nil {
			return fault
		}
	}
	return err
}

var endings = func() (doors [numSlots]Door) {
	for i := range doors {
		doors[i] = Door{Name: "the end of the run", Slot: Slot(i)}
	}
	return doors
}()

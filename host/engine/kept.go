package engine

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/memory"
	"github.com/ecotone-dev/ecotone/host/share"
)

// frozen is the state a module has right after initialisation: its memory and its mutable
// globals. Tables and segments are not in it, because what can change them is never frozen.
type frozen struct {
	memory  *memory.Image
	globals []uint64
	made    time.Time
}

// kept is an instance that a pool may lend again. It belongs to whoever took it from the pool,
// until it is put back or closed; nobody else touches it (S1).
type kept struct {
	metered
	handles handles
	shelf   *shelf
	module  api.Module
	region  *memory.Region
	globals []api.MutableGlobal
	of      *frozen // what it is put back to; nil when it is for one invocation only

	lent   int        // times
	since  time.Time  // when it was put back
	cost   int64      // what the pool's budget has for it
	intact bool       // the last call returned or exited by itself, and nothing else ended the invocation
	debtor *share.Org // pays for putting it back
	result [1]uint64
}

// Call implements [Instance].
func (k *kept) Call(ctx context.Context, export string) *abi.Error {
	k.intact = false
	k.result[0] = 0
	inv := boundary.From(ctx)
	k.debtor = inv.Share()
	err := k.enter(ctx, inv, k.handles.of(k.module, export).f)
	k.handles.trim()
	if err != nil {
		// A process that ended leaves nothing half done: it is put back as after a return.
		k.intact = inv.Exited() && boundary.Ended(ctx) == nil
		return failure(ctx, inv, err)
	}
	k.intact = settled(ctx, inv)
	if status := int32(k.result[0]); status != 0 {
		return abi.Errorf(abi.CodeGuestError, "the capability returned %d", status)
	}
	return nil
}

// enter calls into the guest, whose memory is told of it.
func (k *kept) enter(ctx context.Context, inv *boundary.Invocation, f api.Function) error {
	k.region.Enter()
	defer k.region.Leave()
	inv.Tied(k.region)
	return k.call(ctx, inv, f, k.result[:])
}

// settled reports, after a guest's call has returned, that nothing ends the invocation from
// outside.
func settled(ctx context.Context, inv *boundary.Invocation) bool {
	return !inv.Told(ctx)
}

// MemoryBytes implements [Instance].
func (k *kept) MemoryBytes() int64 { return int64(k.region.Size()) }

// Release implements [Instance]: it puts the instance back, or closes it.
func (k *kept) Release() { k.shelf.pool.release(k) }

// bindAll finds the mutable globals, which the prepared module exports.
func (k *kept) bindAll(names []string) bool {
	if !k.bind(k.module) {
		return false
	}
	k.globals = make([]api.MutableGlobal, len(names))
	for n, name := range names {
		g, ok := k.module.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return false
		}
		k.globals[n] = g
	}
	return true
}

// freeze captures the instance as it is and maps its memory over the capture.
func (k *kept) freeze(now time.Time) (*frozen, error) {
	image, err := k.region.Capture()
	if err != nil {
		return nil, err
	}
	if err := k.region.Map(image); err != nil {
		_ = image.Close()
		return nil, err
	}
	f := &frozen{memory: image, globals: make([]uint64, len(k.globals)), made: now}
	for n, g := range k.globals {
		f.globals[n] = g.Get()
	}
	k.of = f
	return f, nil
}

// become makes a new instance, whose initialiser has not run, what f is.
func (k *kept) become(f *frozen) error {
	if more := f.memory.Size() - k.region.Size(); more > 0 {
		k.module.Memory().Grow(uint32(more >> 16))
	}
	if err := k.region.Map(f.memory); err != nil {
		return err
	}
	k.of = f
	k.setGlobals()
	return nil
}

// restore puts the instance back to what it was made as, on its organisation's account.
func (k *kept) restore() error {
	written, err := k.region.Restore()
	k.debtor.Debit(restoreFuel(written))
	k.debtor = nil
	if err != nil {
		return err
	}
	k.setGlobals()
	return nil
}

func (k *kept) setGlobals() {
	for n, g := range k.globals {
		g.Set(k.of.globals[n])
	}
}

// pristine reports whether the instance is what it was made as, to the last byte.
func (k *kept) pristine() bool {
	for n, g := range k.globals {
		if g.Get() != k.of.globals[n] {
			return false
		}
	}
	size := k.of.memory.Size()
	return k.region.Pristine() && uint64(k.module.Memory().Size()) == size && !k.module.IsClosed()
}

// close frees the instance. Closing a module cannot fail in a way anyone could act on: there
// are no files and no host resources in it. The region goes after the engine let go of it.
func (k *kept) close() error {
	_ = k.module.Close(context.Background())
	return k.region.Close()
}

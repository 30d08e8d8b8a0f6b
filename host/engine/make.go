package engine

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/memory"
)

// make makes an instance: from the image when there is one, else by running the initialiser in
// this invocation, which makes the image.
func (p *Pooled) make(ctx context.Context, s *shelf, inv *boundary.Invocation, f *frozen) (Instance, *abi.Error) {
	k, err := s.instantiate(ctx, inv)
	if err != nil {
		return nil, err
	}
	p.count.made.Add(1)
	k.lent = 1
	inv.Share().Debit(makeFuel(s.image.keeping.Overhead))
	if f != nil {
		if k.become(f) != nil { // the image was replaced or dropped meanwhile
			p.discard(k)
			return Fresh{}.Take(ctx, s.image, inv)
		}
	} else if err := p.initialize(ctx, k, inv); err != nil {
		p.discard(k)
		return nil, err
	}
	p.recharge(k)
	return k, nil
}

// initialize runs the initialiser, without authority, and freezes what it left if that may be
// done.
func (p *Pooled) initialize(ctx context.Context, k *kept, inv *boundary.Invocation) *abi.Error {
	s := k.shelf
	if err := k.initialize(ctx, k.module, s.image, inv); err != nil {
		return err
	}
	if !s.image.learn(inv) {
		return nil // for this invocation only
	}
	inv.Refund()
	if !settled(ctx, inv) || k.region.Size() == 0 {
		return nil
	}
	f, err := k.freeze(time.Now())
	if err != nil {
		return abi.Errorf(abi.CodeInternal, "an image could not be made: %w", err)
	}
	p.publish(s, f)
	return nil
}

// publish makes f what the shelf's instances are put back to, unless another is by now.
func (p *Pooled) publish(s *shelf, f *frozen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || p.current(s, f.made) != nil {
		_ = f.memory.Close() // its one instance has it still, and is not kept
		return
	}
	p.count.frozen.Add(1)
	p.charge(s.tenant, int64(f.memory.Size()))
	p.unfreeze(s, s.frozen.Swap(f))
}

func (p *Pooled) unfreeze(s *shelf, f *frozen) {
	if f != nil {
		p.charge(s.tenant, -int64(f.memory.Size()))
		_ = f.memory.Close()
	}
}

// instantiate makes a new instance in memory of its own, before its initialiser ran. The
// memory is there before the engine asks for it (S11).
func (s *shelf) instantiate(ctx context.Context, inv *boundary.Invocation) (*kept, *abi.Error) {
	linked, err := s.image.linked(ctx, s.key.set)
	if err != nil {
		return nil, abi.AsError(err)
	}
	limit := inv.Limits().Get(abi.LimitMemoryBytes)
	region, err := memory.Reserve(uint64(min(max(limit, 0), s.image.mostSize)))
	if err != nil {
		return nil, abi.Errorf(abi.CodeOverloaded, "there is no memory for the guest: %w", err)
	}
	k := &kept{shelf: s, region: region}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	k.module, err = s.image.runtime.InstantiateModule(withMemory(linked.resolve(ctx), region), s.image.compiled, config)
	if err != nil {
		_ = region.Close()
		// Not the guest's code: a segment that lies outside its memory or table.
		return nil, abi.Errorf(abi.CodeInitializeFailed, "the module cannot be instantiated: %w", traced(err))
	}
	if !k.bindAll(s.names) {
		_ = k.close()
		return nil, abi.Errorf(abi.CodeInternal, "the prepared module does not export its globals")
	}
	return k, nil
}

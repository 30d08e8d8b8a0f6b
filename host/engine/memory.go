package engine

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/ecotone-dev/ecotone/host/memory"
)

// linearMemory is the memory of one guest. It never grows past its limit, whatever maximum
// the module declares (PF-D19), and grows by doubling: a guest that grows page by page would
// otherwise cost the host the square of its size.
type linearMemory struct {
	limit uint64
	bytes []byte // len is the guest's size; what lies past it was never written
}

// withMemoryLimit is the context under which an instance gets such a memory, in bytes.
func withMemoryLimit(ctx context.Context, limit int64) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		return &linearMemory{limit: min(most, uint64(max(limit, 0)))}
	}))
}

// withMemory is the context under which an instance gets a region that is there already.
func withMemory(ctx context.Context, region *memory.Region) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		return region
	}))
}

// Reallocate makes the memory size bytes long; nil is what memory.grow answers -1 for.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		return nil
	}
	if size > uint64(cap(m.bytes)) {
		grown := make([]byte, size, min(max(size, 2*uint64(cap(m.bytes))), m.limit))
		copy(grown, m.bytes)
		m.bytes = grown
	}
	m.bytes = m.bytes[:size]
	return m.bytes
}

// Free implements [experimental.LinearMemory]. The garbage collector frees, which cannot be
// too early.
func (m *linearMemory) Free() { m.bytes = nil }

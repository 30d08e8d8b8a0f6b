package host

import (
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
)

// Pool says what the host's own pool has and did; nothing of one that is another's.
func (h *Host) Pool() engine.PoolStats {
	if h.own == nil {
		return engine.PoolStats{}
	}
	return h.own.Stats()
}

// Compiled says what the compiler did since New.
func (h *Host) Compiled() compile.Stats { return h.compiler.Stats() }

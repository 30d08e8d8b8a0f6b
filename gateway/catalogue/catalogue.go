// Package catalogue answers how far a capability reaches.
//
// It promises an answer that is read live, so that a ceiling never goes stale (X12), and that
// "I cannot say" is an answer of its own, apart from every reach: what follows from it is the
// environment's family, not this package's to decide (X13).
package catalogue

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
)

// Catalogue knows the reach that descriptors declare. Implementations are safe for concurrent
// use and answer or fail by the time ctx ends.
type Catalogue interface {
	// Reach returns the reach that a capability of one biome version declares. known is false
	// when nothing is declared for it (X15). An error means that the catalogue could not be
	// asked. The gate treats the two alike.
	Reach(ctx context.Context, org, digest string, ref abi.CapabilityRef) (reach abi.Reach, known bool, err error)
}

package catalogue

import (
	"context"
	"errors"
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// Key is where the declared reach of one capability of one biome version is kept, as its text.
func Key(org, digest string, ref abi.CapabilityRef) []byte {
	return store.Key("catalogue", org, digest, string(ref))
}

// Stored reads reach records from the store at every question. Nothing is cached.
type Stored struct{ Store store.Store }

var _ Catalogue = Stored{}

// Reach implements [Catalogue]. A record that is no reach is no answer.
func (c Stored) Reach(ctx context.Context, org, digest string, ref abi.CapabilityRef) (abi.Reach, bool, error) {
	var text []byte
	err := c.Store.View(ctx, func(tx store.Tx) (err error) {
		text, err = tx.Get(Key(org, digest, ref))
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("catalogue: %w", err)
	}
	r, err := abi.ParseReach(string(text))
	if err != nil {
		return 0, false, fmt.Errorf("catalogue: a damaged record: %w", err)
	}
	return r, true, nil
}

package keyspace

import (
	"context"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/host/files"
)

var _ files.Labels = (*Labels)(nil)

// batch is how many records one transaction changes.
const batch = 500

// Labels keeps the records of workspaces in a store. It is safe for concurrent use.
type Labels struct{ store store.Store }

// NewLabels keeps records in s. The caller closes s, after the files that use it.
func NewLabels(s store.Store) *Labels { return &Labels{store: s} }

// Load calls fn for every record of a workspace.
func (l *Labels) Load(ctx context.Context, workspace string, fn func(path string, r files.Record) error) error {
	err := l.store.View(ctx, func(tx store.Tx) error {
		return tx.Scan(store.Key(partFile, workspace), nil, func(k, v []byte) (bool, error) {
			parts, err := store.Split(k)
			if err != nil || len(parts) != 3 {
				return false, abi.Errorf(abi.CodeInternal, "a record of the workspace has no path: %w", err)
			}
			var r files.Record
			if err := abi.DecodeStrict(v, &r); err != nil {
				return false, abi.Errorf(abi.CodeInternal, "a record of the workspace is damaged: %w", err)
			}
			return true, fn(parts[2], r)
		})
	})
	return storeError(ctx, err)
}

// Apply makes changes durable; up to 500 in one transaction.
func (l *Labels) Apply(ctx context.Context, workspace string, changes []files.Change) error {
	for part := range slices.Chunk(changes, batch) {
		err := l.store.Update(ctx, func(tx store.Tx) error {
			for _, c := range part {
				key := store.Key(partFile, workspace, c.Path)
				var err error
				if c.Record == nil {
					err = tx.Delete(key)
				} else {
					err = tx.Set(key, encode(c.Record))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return storeError(ctx, err)
		}
	}
	return nil
}

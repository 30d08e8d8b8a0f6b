package policy

import (
	"context"
	"errors"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// Cut is the part of a listing that is wanted: at most Limit items, of those after the id After
// ("": from the first).
type Cut struct {
	After string
	Limit int
}

// Page is one part of a listing, in the order of ids, which is by age. Next is the After of the
// part that follows, "" when there is none.
type Page[T any] struct {
	Items []T
	Next  string
}

// maxLooked bounds the records that one page looks at. Where few of them are wanted a page may
// be short, or empty, and have a next one.
const maxLooked = 10_000

// listing reads one page of a kind's records from the store: what it costs does not grow with
// how many there are. show says what a record is listed as, or that it is not.
func listing[R, T any](ctx context.Context, s *Service, p session.Principal, op Op, kind, org string, cut Cut, show func(store.Tx, *R) (T, bool, error)) (Page[T], error) {
	out := Page[T]{Items: []T{}}
	err := s.read(p, op, org, func(*state, *orgState) error { return nil })
	if err != nil {
		return out, err
	}
	prefix := store.Key(keySpace, kind, org)
	var from []byte
	if cut.After != "" {
		from = store.Key(keySpace, kind, org, cut.After)
	}
	var last []byte
	looked := 0
	err = s.store.View(ctx, func(tx store.Tx) error {
		return tx.Scan(prefix, from, func(k, v []byte) (bool, error) {
			if len(out.Items) >= cut.Limit || looked == maxLooked {
				parts, err := store.Split(last)
				if err == nil {
					out.Next = parts[len(parts)-1]
				}
				return false, err
			}
			looked, last = looked+1, k
			var rec R
			if err := abi.DecodeStrict(v, &rec); err != nil {
				return false, err
			}
			shown, ok, err := show(tx, &rec)
			if ok && err == nil {
				out.Items = append(out.Items, shown)
			}
			return true, err
		})
	})
	if err != nil {
		return Page[T]{}, readable(err)
	}
	return out, nil
}

// lookupRaw reads what may not be there; nil is that it is not.
func lookupRaw(tx store.Tx, key []byte) ([]byte, error) {
	v, err := tx.Get(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return v, err
}

// lookup reads a record that may not be there.
func lookup[R any](tx store.Tx, key []byte) (*R, error) {
	v, err := lookupRaw(tx, key)
	if err != nil || v == nil {
		return nil, err
	}
	out := new(R)
	return out, abi.DecodeStrict(v, out)
}

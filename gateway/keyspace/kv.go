package keyspace

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

var _ boundary.KV = (*KV)(nil)

// Bounds of a listing.
const (
	maxItems     = 1000
	maxListBytes = 256 << 10
)

// KV is the key spaces in a store. It is safe for concurrent use and holds nothing itself.
type KV struct{ store store.Store }

// New keeps key spaces in s. The caller closes s.
func New(s store.Store) *KV { return &KV{store: s} }

// keyMeta is what is kept beside a value. The version is random and says nothing of it (S5).
type keyMeta struct {
	Label   abi.Classification `json:"label"`
	Version string             `json:"version"`
	Size    int64              `json:"size"`
}

// totals of a key space. Bytes counts keys and values.
type totals struct {
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"`
}

func errNoKey() error { return abi.Errorf(abi.CodeKeyNotFound, "there is no such key") }

// request is one call on one key space.
type request struct {
	boundary.Scope
	names
	floor abi.Classification
	grant glob.Sets
}

func begin(sc boundary.Scope) (*request, error) {
	if sc.Authority == nil || sc.Flow == nil {
		return nil, abi.Errorf(abi.CodeGrantRevoked, "no authority")
	}
	spec := sc.Authority.Spec()
	n, err := namesOf(spec)
	if err != nil {
		return nil, err
	}
	return &request{Scope: sc, names: n, floor: spec.Floor, grant: spec.Resources}, nil
}

// beginKey begins a call about one key.
func beginKey(sc boundary.Scope, key string) (*request, error) {
	r, err := begin(sc)
	if err != nil {
		return nil, err
	}
	if err := checkKey(key, &sc.Authority.Spec().Limits); err != nil {
		return nil, err
	}
	if !r.grant.Match(key) {
		return nil, notNamed()
	}
	return r, nil
}

func notNamed() error {
	return abi.Errorf(abi.CodeResourceNotInGlob, "the grant does not name this key").
		WithHint("the resource globs of the grant say which keys the capability may use")
}

// observe raises the invocation; false is above its ceiling, and noted as withheld.
func (r *request) observe(label abi.Classification) bool {
	c := r.Authority.Spec().Ceiling
	return r.Flow.Observe(label.Source()) == nil && c.Valid() && label.Source() <= c
}

func (r *request) emit(label abi.Classification) error {
	if err := r.Flow.Emit(label.Sink()); err != nil {
		return err
	}
	return nil
}

// load reads the record of a key; nil is that there is none.
func (r *request) load(tx store.Tx, key string) (*keyMeta, error) {
	return decode[keyMeta](tx, under(r.meta, key))
}

// decode reads a document of ours; nil is that there is none.
func decode[T any](tx store.Tx, key []byte) (*T, error) {
	b, err := tx.Get(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	v := new(T)
	if err := abi.DecodeStrict(b, v); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "a record of the key space is damaged: %w", err)
	}
	return v, nil
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("keyspace: a document that does not marshal: " + err.Error())
	}
	return b
}

// Get places the value in the result; meta has {version, classification, size}.
func (k *KV) Get(ctx context.Context, sc boundary.Scope, key string) (boundary.Result, error) {
	r, err := beginKey(sc, key)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: key}
	err = k.store.View(ctx, func(tx store.Tx) error {
		if !r.observe(r.floor) {
			return errNoKey()
		}
		m, err := r.load(tx, key)
		if err != nil {
			return err
		}
		if m == nil || !r.observe(m.Label) {
			return errNoKey()
		}
		if res.Body, err = tx.Get(under(r.value, key)); err != nil {
			return abi.Errorf(abi.CodeInternal, "a key of the key space has no value: %w", err)
		}
		res.Meta = encode(struct {
			Version        string             `json:"version"`
			Classification abi.Classification `json:"classification"`
			Size           int64              `json:"size"`
		}{m.Version, m.Label, m.Size})
		return nil
	})
	return res, storeError(ctx, err)
}

// Put stores the value durably. The totals are counted in the same transaction, so that
// puts at the same time cannot pass a limit together.
func (k *KV) Put(ctx context.Context, sc boundary.Scope, key string, value []byte) (boundary.Result, error) {
	r, err := beginKey(sc, key)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: key}
	limits := &sc.Authority.Spec().Limits
	if limit := limits.Get(abi.LimitValueBytes); int64(len(value)) > limit {
		return res, abi.Errorf(abi.CodeValueTooLarge, "the value is larger than %d bytes", limit)
	}
	err = k.store.Update(ctx, func(tx store.Tx) error {
		if err := r.current(); err != nil {
			return err
		}
		if !r.observe(r.floor) {
			return abi.Errorf(abi.CodeClassificationCeiling, "the space is classified above what the invocation may see")
		}
		old, err := r.load(tx, key)
		if err != nil {
			return err
		}
		next := keyMeta{Label: r.Flow.Label().Source(), Version: rand.Text(), Size: int64(len(value))}
		sink := r.floor
		if old != nil {
			next.Label = old.Label
			if r.within(old.Label) {
				sink = old.Label
			}
		}
		if err := r.emit(sink); err != nil {
			return err
		}
		if err := r.count(tx, key, old, &next, limits); err != nil {
			return err
		}
		if err := tx.Set(under(r.value, key), value); err != nil {
			return err
		}
		return tx.Set(under(r.meta, key), encode(next))
	})
	return res, storeError(ctx, err)
}

// Delete removes the key.
func (k *KV) Delete(ctx context.Context, sc boundary.Scope, key string) (boundary.Result, error) {
	r, err := beginKey(sc, key)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: key}
	err = k.store.Update(ctx, func(tx store.Tx) error {
		if err := r.current(); err != nil {
			return err
		}
		if !r.observe(r.floor) {
			return errNoKey()
		}
		if err := r.emit(r.floor); err != nil {
			return err
		}
		old, err := r.load(tx, key)
		if err != nil {
			return err
		}
		if old == nil || !r.within(old.Label) {
			return errNoKey()
		}
		if err := r.count(tx, key, old, nil, nil); err != nil {
			return err
		}
		if err := tx.Delete(under(r.value, key)); err != nil {
			return err
		}
		return tx.Delete(under(r.meta, key))
	})
	return res, storeError(ctx, err)
}

// List places the keys with the prefix and after one, in the order of their bytes, in the
// result; meta has {more, count}. Limits below 1 and above 1000 are 1000.
func (k *KV) List(ctx context.Context, sc boundary.Scope, prefix, after string, limit int) (boundary.Result, error) {
	r, err := begin(sc)
	if err != nil {
		return boundary.Result{}, err
	}
	most := sc.Authority.Spec().Limits.Get(abi.LimitKeyBytes)
	if int64(len(prefix)) > most || int64(len(after)) > most || !printable(prefix) || !printable(after) {
		return boundary.Result{}, abi.Errorf(abi.CodeKeyInvalid, "the prefix or the key to go on after is not a key")
	}
	res := boundary.Result{Target: prefix}
	if !r.grant.Any() {
		return res, notNamed()
	}
	if limit < 1 || limit > maxItems {
		limit = maxItems
	}
	body, count, more := []byte{'['}, 0, false
	err = k.store.View(ctx, func(tx store.Tx) error {
		body, count, more = body[:1], 0, false
		if !r.observe(r.floor) {
			return nil
		}
		var from []byte
		if after != "" {
			from = under(r.meta, after)
		}
		return tx.Scan(under(r.meta, prefix), from, func(sk, v []byte) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			key := string(sk[len(r.meta):])
			var m keyMeta
			if err := abi.DecodeStrict(v, &m); err != nil {
				return false, abi.Errorf(abi.CodeInternal, "a record of the key space is damaged: %w", err)
			}
			if !r.grant.Match(key) || !r.within(m.Label) {
				return true, nil
			}
			item := encode(key)
			if count == limit || len(body)+len(item)+2 > maxListBytes {
				more = true
				return false, nil
			}
			if !r.observe(m.Label) {
				return true, nil
			}
			if count > 0 {
				body = append(body, ',')
			}
			body = append(body, item...)
			count++
			return true, nil
		})
	})
	if err != nil {
		return res, storeError(ctx, err)
	}
	res.Body = append(body, ']')
	res.Meta = encode(struct {
		More  bool `json:"more"`
		Count int  `json:"count"`
	}{more, count})
	return res, nil
}

// within reports whether a label is within the ceiling, and notes it as withheld if not. It
// raises nothing.
func (r *request) within(label abi.Classification) bool {
	if c := r.Authority.Spec().Ceiling; c.Valid() && label.Source() <= c {
		return true
	}
	return r.observe(label)
}

func (r *request) current() error {
	if err := r.Authority.Current(); err != nil {
		return err
	}
	return nil
}

// count brings the totals to what they are once next takes the place of old; either may be
// nil. Limits are asked only where a total grows.
func (r *request) count(tx store.Tx, key string, old, next *keyMeta, limits *abi.Limits) error {
	t, err := decode[totals](tx, r.names.count)
	if err != nil {
		return err
	}
	if t == nil {
		t = &totals{}
	}
	was := *t
	if old != nil {
		t.Keys--
		t.Bytes -= int64(len(key)) + old.Size
	}
	if next != nil {
		t.Keys++
		t.Bytes += int64(len(key)) + next.Size
		if limit := limits.Get(abi.LimitKeys); t.Keys > limit && t.Keys > was.Keys {
			return abi.Errorf(abi.CodeKVFull, "the key space would have more than %d keys", limit)
		}
		if limit := limits.Get(abi.LimitKVBytes); t.Bytes > limit && t.Bytes > was.Bytes {
			return abi.Errorf(abi.CodeKVFull, "the key space would have more than %d bytes", limit)
		}
	}
	return tx.Set(r.names.count, encode(t))
}

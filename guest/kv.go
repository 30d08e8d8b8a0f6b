package guest

import (
	"encoding/json"

	"github.com/ecotone-dev/ecotone/guest/internal/call"
	"github.com/ecotone-dev/ecotone/guest/internal/imports"
)

// KV is the durable key space of the biome in the session's space.
var KV Keys

// Keys is the type of [KV].
type Keys struct{}

// Item is a stored value and what the host says of it.
type Item struct {
	Value          []byte `json:"-"`
	Version        string `json:"version"`        // opaque; another one after every put
	Classification string `json:"classification"` // of the key, fixed when it was made
}

// Get returns the value of key. ENOENT: there is none, or it is above what this invocation
// may see.
func (k Keys) Get(key string) ([]byte, error) {
	r, err := call.Body(func() int64 { return imports.KVGet(key) })
	return r.Body, err
}

// Item is Get with what the host says of the value.
func (k Keys) Item(key string) (Item, error) {
	r, err := call.Both(func() int64 { return imports.KVGet(key) })
	if err != nil {
		return Item{}, err
	}
	item := Item{Value: r.Body}
	return item, describe(r.Meta, &item)
}

// Put stores the value durably. A new key takes the invocation's classification; EDENIED
// also means that an existing key is classified lower than what this invocation has seen.
// ETOOBIG: the value is over its limit; EQUOTA: the key space is full.
func (k Keys) Put(key string, value []byte) error {
	_, err := call.Do(func() int64 { return imports.KVPut(key, value) })
	return err
}

// Delete removes key. ENOENT: there is none.
func (k Keys) Delete(key string) error {
	_, err := call.Do(func() int64 { return imports.KVDelete(key) })
	return err
}

// List returns, in order, the keys that begin with prefix and follow the key after ("" for
// the first), at most limit of them (0 for as many as the host lists at once), and whether
// there are more.
func (k Keys) List(prefix, after string, limit int) (keys []string, more bool, err error) {
	more, err = listing(&keys, func() int64 { return imports.KVList(prefix, after, limit) })
	return keys, more, err
}

// describe decodes a document of the host's. Fields this SDK does not know are left alone: a
// newer host may say more.
func describe(meta []byte, v any) error {
	if len(meta) == 0 {
		return nil
	}
	return json.Unmarshal(meta, v)
}

// listing makes a call whose body is a JSON array and whose meta says whether there is more.
func listing(v any, f func() int64) (more bool, err error) {
	r, err := call.Both(f)
	if err != nil {
		return false, err
	}
	var meta struct {
		More bool `json:"more"`
	}
	if err := describe(r.Meta, &meta); err != nil {
		return false, err
	}
	return meta.More, describe(r.Body, v)
}

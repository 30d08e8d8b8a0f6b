package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// limitsRecord is the operator's limits of one environment. Resolved values are stored, so
// that a new default changes nothing that was decided before.
type limitsRecord struct {
	Environment abi.EnvironmentRef `json:"environment"`
	Limits      map[string]int64   `json:"limits"`
	Revision    uint64             `json:"revision"`
	UpdatedBy   string             `json:"updatedBy"`
	UpdatedAt   time.Time          `json:"updatedAt"`
}

// table is one kind of record: where it is kept, and what a record of it does to the state.
// The same function is used for a record that was just written and for one that is loaded, so
// that a restart cannot find another policy.
type table struct {
	kind string
	of   reflect.Type
	// key is where a record of it is kept. Every record belongs to one organisation.
	key func(rec any) []byte
	// load decodes a stored record and applies it.
	load func(*state, []byte) error
	// apart are records that are also written outside of changes. They are not counted in a change's
	// sum, so nothing that decides over rights may be among them.
	apart bool
}

// tables is in the order in which records are loaded: what refers to something comes after it,
// and revocations before what they end, so that what is over takes no room.
var tables = []table{
	tableOf("org", func(r Org) path { return path{r.ID} }),
	tableOf("rates", func(r Rates) path { return path{r.Org} }),
	tableOf("limits", func(r limitsRecord) path { return path{string(r.Environment)} }),
	tableOf("space", func(r space.Space) path { return path{r.Org, r.ID} }),
	tableOf("override", func(r environment.Override) path { return path{r.Org, string(r.Environment)} }),
	tableOf("environment", func(r environment.Custom) path { return path{r.Org, r.Slug} }),
	tableOf("endpoint", func(r grant.Endpoint) path { return path{r.Org, r.Name} }),
	tableOf("secret", func(r grant.Secret) path { return path{r.Org, r.Name} }),
	tableOf("upload", func(r Upload) path { return path{r.Org, r.Biome, r.Digest} }),
	tableOf("biome", func(r Biome) path { return path{r.Org, r.Name} }),
	tableOf("lifecycle", func(r grant.Lifecycle) path { return path{r.Org, string(r.Capability)} }),
	tableOf("revocation", func(r grant.Revocation) path { return path{r.Org, r.Grant} }),
	tableOf("grant", func(r grant.Grant) path { return path{r.Org, r.ID} }),
	tableOf("environment-grant", func(r grant.EnvironmentGrant) path { return path{r.Org, r.ID} }),
	tableOf("approve-grant", func(r grant.ApproveGrant) path { return path{r.Org, r.ID} }),
	// What came of an approval, not whether it stands.
	besides(tableOf("approval-result", func(r approval.Result) path { return path{r.Org, r.Approval} })),
	tableOf("approval-use", func(r approval.Use) path { return path{r.Org, r.Approval} }),
	tableOf("approval-withdrawal", func(r approval.Withdrawal) path { return path{r.Org, r.Approval} }),
	tableOf("approval-decision", func(r approval.Decision) path { return path{r.Org, r.Approval} }),
	tableOf("approval", func(r approval.Request) path { return path{r.Org, r.ID} }),
	tableOf("install", func(r grant.Install) path { return path{r.Org, r.ID} }),
	tableOf("principal", func(r session.Principal) path { return path{r.Org, r.ID} }),
	tableOf("session", func(r session.Session) path { return path{r.Org, r.ID} }),
	tableOf("token-revocation", func(r tokenRevocation) path { return path{r.Org, r.Token} }),
	tableOf("token", func(r session.Token) path { return path{r.Org, r.ID} }),
}

// path is where a record is kept below its kind.
type path []string

// tokenRevocation ends a token. It is a record of its own: a token that a restored copy of its
// record brings back stays revoked.
type tokenRevocation struct {
	Token     string    `json:"token"`
	Org       string    `json:"org"`
	CreatedBy string    `json:"createdBy"`
	CreatedAt time.Time `json:"createdAt"`
}

// besides says of a table that its records are written outside of changes.
func besides(t table) table {
	t.apart = true
	return t
}

func tableOf[T any](kind string, at func(T) path) table {
	return table{
		kind: kind, of: reflect.TypeFor[T](),
		key: func(rec any) []byte { return store.Key(append(path{keySpace, kind}, at(rec.(T))...)...) },
		load: func(st *state, data []byte) error {
			rec, err := decode[T](data)
			if err != nil {
				return fmt.Errorf("a %s record does not decode: %w", kind, err)
			}
			if err := st.apply(rec); err != nil {
				return fmt.Errorf("a %s record does not apply: %w", kind, err)
			}
			return nil
		},
	}
}

// decode is [abi.DecodeStrict] at a third of its price, for what this package wrote itself: a
// record that comes out as the bytes it was read from has no key twice and none that is unknown.
// Only what does not is judged the long way: a restart reads a million of them.
func decode[T any](data []byte) (T, error) {
	var rec T
	if json.Unmarshal(data, &rec) == nil {
		if again, err := json.Marshal(rec); err == nil && bytes.Equal(again, data) {
			return rec, nil
		}
	}
	var strict T
	err := abi.DecodeStrict(data, &strict)
	return strict, err
}

// keySpace begins every key of this package.
const keySpace = "policy"

func prefixOf(kind string) []byte { return store.Key(keySpace, kind) }

// keyOf is where a record is kept.
func keyOf(rec any) []byte {
	of := reflect.TypeOf(rec)
	for i := range tables {
		if tables[i].of == of {
			return tables[i].key(rec)
		}
	}
	panic(fmt.Sprintf("policy: no table for %T", rec))
}

// encode is a record as it is stored. What only an environment of an organisation's own may carry, no
// other record has a place for, and what it is held to is asked here as well as of what is read (X54).
func encode(rec any) (key, value []byte, err error) {
	if c, ok := rec.(environment.Custom); ok {
		if err := c.Check(); err != nil {
			return nil, nil, err
		}
	}
	value, err = json.Marshal(rec)
	return keyOf(rec), value, err
}

// put writes a record that is not part of a change: of a table that is apart.
func put(tx store.Tx, rec any) error {
	key, value, err := encode(rec)
	if err != nil {
		return err
	}
	return tx.Set(key, value)
}

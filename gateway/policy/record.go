package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	// load decodes a stored record and applies it.
	load func(*state, []byte) error
	// apart are records that are also written outside of changes. They are not counted in a change's
	// sum, so nothing that decides over rights may be among them.
	apart bool
}

// tables is in the order in which records are loaded: what refers to something comes after it,
// and revocations before what they end, so that what is over takes no room.
var tables = []table{
	tableOf[Org]("org"),
	tableOf[Rates]("rates"),
	tableOf[limitsRecord]("limits"),
	tableOf[space.Space]("space"),
	tableOf[environment.Override]("override"),
	tableOf[environment.Custom]("environment"),
	tableOf[grant.Endpoint]("endpoint"),
	tableOf[grant.Secret]("secret"),
	tableOf[Upload]("upload"),
	tableOf[Biome]("biome"),
	tableOf[grant.Lifecycle]("lifecycle"),
	tableOf[grant.Revocation]("revocation"),
	tableOf[grant.Grant]("grant"),
	tableOf[grant.EnvironmentGrant]("environment-grant"),
	tableOf[grant.ApproveGrant]("approve-grant"),
	besides(tableOf[approval.Result]("approval-result")), // what came of an approval, not whether it stands
	tableOf[approval.Use]("approval-use"),
	tableOf[approval.Decision]("approval-decision"),
	tableOf[approval.Request]("approval"),
	tableOf[grant.Install]("install"),
	tableOf[session.Principal]("principal"),
	tableOf[session.Session]("session"),
	tableOf[tokenRevocation]("token-revocation"),
	tableOf[session.Token]("token"),
}

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

func tableOf[T any](kind string) table {
	return table{kind: kind, load: func(st *state, data []byte) error {
		rec, err := decode[T](data)
		if err != nil {
			return fmt.Errorf("a %s record does not decode: %w", kind, err)
		}
		if err := st.apply(rec); err != nil {
			return fmt.Errorf("a %s record does not apply: %w", kind, err)
		}
		return nil
	}}
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

// keyOf is where a record is kept. Every record belongs to one organisation.
func keyOf(rec any) []byte {
	switch r := rec.(type) {
	case Org:
		return store.Key(keySpace, "org", r.ID)
	case Rates:
		return store.Key(keySpace, "rates", r.Org)
	case limitsRecord:
		return store.Key(keySpace, "limits", string(r.Environment))
	case space.Space:
		return store.Key(keySpace, "space", r.Org, r.ID)
	case environment.Override:
		return store.Key(keySpace, "override", r.Org, string(r.Environment))
	case environment.Custom:
		return store.Key(keySpace, "environment", r.Org, r.Slug)
	case grant.Endpoint:
		return store.Key(keySpace, "endpoint", r.Org, r.Name)
	case grant.Secret:
		return store.Key(keySpace, "secret", r.Org, r.Name)
	case Upload:
		return store.Key(keySpace, "upload", r.Org, r.Biome, r.Digest)
	case Biome:
		return store.Key(keySpace, "biome", r.Org, r.Name)
	case grant.Lifecycle:
		return store.Key(keySpace, "lifecycle", r.Org, string(r.Capability))
	case grant.Grant:
		return store.Key(keySpace, "grant", r.Org, r.ID)
	case grant.EnvironmentGrant:
		return store.Key(keySpace, "environment-grant", r.Org, r.ID)
	case grant.ApproveGrant:
		return store.Key(keySpace, "approve-grant", r.Org, r.ID)
	case approval.Request:
		return store.Key(keySpace, "approval", r.Org, r.ID)
	case approval.Decision:
		return store.Key(keySpace, "approval-decision", r.Org, r.Approval)
	case approval.Use:
		return store.Key(keySpace, "approval-use", r.Org, r.Approval)
	case approval.Result:
		return store.Key(keySpace, "approval-result", r.Org, r.Approval)
	case grant.Install:
		return store.Key(keySpace, "install", r.Org, r.ID)
	case grant.Revocation:
		return store.Key(keySpace, "revocation", r.Org, r.Grant)
	case session.Principal:
		return store.Key(keySpace, "principal", r.Org, r.ID)
	case session.Token:
		return store.Key(keySpace, "token", r.Org, r.ID)
	case tokenRevocation:
		return store.Key(keySpace, "token-revocation", r.Org, r.Token)
	case session.Session:
		return store.Key(keySpace, "session", r.Org, r.ID)
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

package vault

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Record is one secret as it is stored: its newest version.
type Record struct {
	Version uint64 `json:"version"`
	Uses    []Use  `json:"uses"`
	Sealed  Sealed `json:"sealed"`
}

// Records finds secrets. Lookup answers NOT_FOUND when the organisation has no secret of
// that name; any other error means that the store cannot answer. It is safe for concurrent
// use.
type Records interface {
	Lookup(ctx context.Context, org, name string) (Record, error)
}

// MaxEchoes is how often a biome may have one version of a secret sent back to it before the
// secret is denied to that biome until the process restarts or the secret changes: each
// echo answers a guess, so the number of answers is bounded (S15).
const MaxEchoes = 3

// maxStrikes bounds the table of echoes. Rows come from granted secrets only.
const maxStrikes = 4096

// Vault uses secrets for guests. Safe for concurrent use.
type Vault struct {
	keys    *Keyring
	records Records

	mu      sync.Mutex
	strikes map[strike]int
}

type strike struct {
	org, biome, name string
	version          uint64
}

// New makes a vault over records sealed with keys.
func New(keys *Keyring, records Records) *Vault {
	return &Vault{keys: keys, records: records, strikes: map[strike]int{}}
}

// environmentInfix joins a secret's name and an environment's slug: the secret token--project is
// the value that token has in project (H6). Guests and install grants say token.
const environmentInfix = "--"

// find answers only for a secret that the authority names and that exists; everything else
// is the same SECRET_DENIED (PF-F2). It answers with the environment's own value when there is
// one, and with the name the record is kept under.
func (v *Vault) find(ctx context.Context, s boundary.Scope, asked string) (name string, rec Record, err error) {
	if s.Authority == nil || !slices.Contains(s.Authority.Spec().Secrets, asked) {
		return "", Record{}, denied(errors.New("vault: not named by the authority"))
	}
	spec := s.Authority.Spec()
	for _, name = range []string{asked + environmentInfix + spec.Environment.Slug(), asked} {
		if rec, err = v.records.Lookup(ctx, spec.Org, name); abi.CodeOf(err) != abi.CodeNotFound {
			break
		}
	}
	switch {
	case err == nil:
	case abi.CodeOf(err) == abi.CodeNotFound:
		return "", Record{}, denied(err)
	default:
		return "", Record{}, abi.Errorf(abi.CodeNotReady, "secrets cannot be read at the moment").WithCause(err)
	}
	if v.blocked(strikeOf(s, name, rec.Version)) {
		return "", Record{}, denied(errors.New("vault: sent back too often"))
	}
	return name, rec, nil
}

// open unseals a record. The binding uses the organisation of the authority and the name
// the record was found under, not what the record says of itself.
func (v *Vault) open(s boundary.Scope, name string, rec Record) (Value, error) {
	return v.keys.Open(s.Authority.Spec().Org, name, rec.Version, rec.Sealed)
}

// Header finds the credential that the named secret puts into a request which endpoints
// admit. Without a use that covers exactly this request, over TLS or toward a loopback
// endpoint, it is SECRET_DENIED. The caller releases the credential when the response has
// been searched.
func (v *Vault) Header(ctx context.Context, s boundary.Scope, name string, endpoints []*egress.Endpoint, method string, target *egress.Target) (*Credential, error) {
	name, rec, err := v.find(ctx, s, name)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rec.Uses, func(u Use) bool { return u.admits(endpoints, method, target) })
	if i < 0 {
		return nil, denied(errors.New("vault: no use covers the request"))
	}
	if target.Scheme != "https" && !allLoopback(endpoints) {
		return nil, denied(errors.New("vault: a secret does not go out in clear text"))
	}
	value, err := v.open(s, name, rec)
	if err != nil {
		return nil, err
	}
	if !headerSafe(value.Reveal()) {
		value.Wipe()
		return nil, denied(errors.New("vault: the value cannot be sent in a header"))
	}
	return &Credential{
		vault: v, strike: strikeOf(s, name, rec.Version), header: rec.Uses[i].Header, prefix: rec.Uses[i].Prefix,
		value: value, scrub: newScrubber(value.Reveal()),
	}, nil
}

func allLoopback(endpoints []*egress.Endpoint) bool {
	for _, e := range endpoints {
		if !e.Loopback {
			return false
		}
	}
	return len(endpoints) > 0
}

// HMAC signs the secret's fixed prefix and the message with HMAC-SHA-256. The label of the
// use joins the invocation's before the signature is delivered.
func (v *Vault) HMAC(ctx context.Context, s boundary.Scope, name string, message []byte) (boundary.Result, error) {
	var res boundary.Result
	if abi.ValidSlug(name) {
		res.Target = name
	}
	name, rec, err := v.find(ctx, s, name)
	if err != nil {
		return res, err
	}
	i := slices.IndexFunc(rec.Uses, func(u Use) bool { return u.Kind == KindHMAC && len(u.Prefix) >= MinPrefixBytes })
	if i < 0 {
		return res, denied(errors.New("vault: no hmac use"))
	}
	value, err := v.open(s, name, rec)
	if err != nil {
		return res, err
	}
	defer value.Wipe()
	if err := s.Flow.Observe(rec.Uses[i].Label); err != nil {
		return res, denied(err)
	}
	mac := hmac.New(sha256.New, value.Reveal())
	mac.Write([]byte(rec.Uses[i].Prefix))
	mac.Write(message)
	res.Body = mac.Sum(nil)
	return res, nil
}

func strikeOf(s boundary.Scope, name string, version uint64) strike {
	spec := s.Authority.Spec()
	return strike{org: spec.Org, biome: spec.Biome, name: name, version: version}
}

func (v *Vault) blocked(k strike) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.strikes[k] >= MaxEchoes
}

func (v *Vault) count(k strike) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.strikes[k]; !known && len(v.strikes) >= maxStrikes {
		for old := range v.strikes { // any: the table only fills when thousands of secrets echo
			delete(v.strikes, old)
			break
		}
	}
	v.strikes[k]++
}

// Credential is one secret on its way into one request. Not safe for concurrent use.
type Credential struct {
	vault  *Vault
	strike strike
	header string
	prefix string
	value  Value
	scrub  *scrubber
}

// Name is the header the value goes into.
func (c *Credential) Name() string { return c.header }

// Set puts the value into h, in place of anything there (PF-F9). What net/http takes is a
// string, which cannot be wiped; it lives as long as the request.
func (c *Credential) Set(h http.Header) {
	h.Set(c.header, c.prefix+string(c.value.Reveal()))
}

// Echoed reports whether any of the pieces holds the value in one of its usual encodings,
// and counts it against the biome. Each piece is searched by itself. An error means that ctx
// ended first: nothing is known, and nothing may be delivered.
func (c *Credential) Echoed(ctx context.Context, pieces ...[]byte) (bool, error) {
	for _, p := range pieces {
		found, err := c.scrub.found(ctx, p)
		if err != nil {
			return false, err
		}
		if found {
			c.vault.count(c.strike)
			return true, nil
		}
	}
	return false, nil
}

// Release wipes the value. The credential is of no use afterwards.
func (c *Credential) Release() {
	c.value.Wipe()
	c.scrub.wipe()
}

var _ boundary.Signer = (*Vault)(nil)

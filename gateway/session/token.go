package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

// Kind says what a token stands for.
type Kind string

const (
	KindPrincipal Kind = "principal"
	KindSession   Kind = "session"
)

const (
	prefixPrincipal = "eco_p_"
	prefixSession   = "eco_s_" // as long as the other
)

var tokenPrefix = map[Kind]string{KindPrincipal: prefixPrincipal, KindSession: prefixSession}

const (
	secretBytes  = 32
	encodedBytes = 43 // of a secret in base64 without padding
	idBytes      = ulid.EncodedSize
	tokenBytes   = len(prefixSession) + idBytes + encodedBytes
)

// Token is the record of a bearer token. The token itself is not in it: only the hash of its
// secret part (PF-F15).
type Token struct {
	ID        string     `json:"id"` // ULID; the public part of the token
	Kind      Kind       `json:"kind"`
	Org       string     `json:"org"`
	Principal string     `json:"principal,omitempty"`
	Session   string     `json:"session,omitempty"`
	Hash      string     `json:"hash"` // hex SHA-256 of the secret part
	Expires   *time.Time `json:"expires,omitempty"`
	CreatedBy string     `json:"createdBy"`
	CreatedAt time.Time  `json:"createdAt"`
}

// NewToken draws a token and returns its record's ID and Hash together with the text that is
// shown once and never again.
func NewToken(kind Kind, now time.Time) (t Token, text string) {
	id := NewID(now)
	var secret [secretBytes]byte
	rand.Read(secret[:]) // never fails: the process ends without randomness
	sum := sha256.Sum256(secret[:])
	return Token{ID: id, Kind: kind, Hash: hex.EncodeToString(sum[:]), CreatedAt: now},
		tokenPrefix[kind] + id + base64.RawURLEncoding.EncodeToString(secret[:])
}

// NewID draws a ULID: ordered by time, 80 random bits.
func NewID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

// Presented is a token as a caller presents it, taken apart.
type Presented struct {
	Kind Kind
	ID   string // a part of the text
	hash [sha256.Size]byte
}

// strict refuses a second spelling of the last bits.
var strict = base64.RawURLEncoding.Strict()

// Parse takes a token apart. Each token has one spelling; anything else is UNAUTHENTICATED,
// with nothing of the text in the error. A good token costs no allocation: it is parsed with every
// request.
func Parse(text string) (Presented, error) {
	var p Presented
	switch {
	case len(text) != tokenBytes:
	case strings.HasPrefix(text, prefixSession):
		p.Kind = KindSession
	case strings.HasPrefix(text, prefixPrincipal):
		p.Kind = KindPrincipal
	}
	if p.Kind == "" {
		return Presented{}, Refused()
	}
	rest := text[len(prefixSession):]
	if !canonicalID(rest[:idBytes]) {
		return Presented{}, Refused()
	}
	var encoded [encodedBytes]byte
	copy(encoded[:], rest[idBytes:])
	var secret [secretBytes]byte
	if n, err := strict.Decode(secret[:], encoded[:]); err != nil || n != secretBytes { // fewer: it skips line breaks
		return Presented{}, Refused()
	}
	p.ID, p.hash = rest[:idBytes], sha256.Sum256(secret[:])
	return p, nil
}

// canonicalID reports whether s, of the right length, is a ULID as this package spells one: 128 bits
// in Crockford's alphabet, capitals only.
func canonicalID(s string) bool {
	for i := range len(s) {
		if strings.IndexByte(ulid.Encoding, s[i]) < 0 {
			return false
		}
	}
	return s[0] <= '7' // 26 characters would hold 130 bits
}

// Refused is the one answer to every token that is not valid.
func Refused() *abi.Error {
	return abi.Errorf(abi.CodeUnauthenticated, "the token is not valid").
		WithHint("present a token of this server as Authorization: Bearer eco_…")
}

// Matches compares the presented secret with a record in constant time. A record that is
// absent (nil), of another kind or another id, expired, or damaged matches nothing; the work
// done is the same for each, so that an id does not show whether it exists.
func (p Presented) Matches(t *Token, now time.Time) bool {
	var want [sha256.Size]byte
	ok := t != nil && t.Kind == p.Kind && t.ID == p.ID && (t.Expires == nil || now.Before(*t.Expires))
	if t != nil {
		ok = unhex(&want, t.Hash) && ok
	}
	return subtle.ConstantTimeCompare(want[:], p.hash[:]) == 1 && ok
}

// unhex decodes exactly as many digits as fill out.
func unhex(out *[sha256.Size]byte, digits string) bool {
	var text [2 * sha256.Size]byte
	if copy(text[:], digits) != len(text) || len(digits) != len(text) {
		return false
	}
	_, err := hex.Decode(out[:], text[:])
	return err == nil
}

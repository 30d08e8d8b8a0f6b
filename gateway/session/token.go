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

var tokenPrefix = map[Kind]string{KindPrincipal: "eco_p_", KindSession: "eco_s_"}

const (
	secretBytes = 32
	idBytes     = 26 // of a ULID in text
)

var tokenBytes = len("eco_p_") + idBytes + base64.RawURLEncoding.EncodedLen(secretBytes)

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
	ID   string
	hash [sha256.Size]byte
}

// Parse takes a token apart. Each token has one spelling; anything else is UNAUTHENTICATED,
// with nothing of the text in the error.
func Parse(text string) (Presented, error) {
	var p Presented
	for kind, prefix := range tokenPrefix {
		if strings.HasPrefix(text, prefix) {
			p.Kind = kind
		}
	}
	if p.Kind == "" || len(text) != tokenBytes {
		return Presented{}, Refused()
	}
	rest := text[len(tokenPrefix[p.Kind]):]
	id, err := ulid.ParseStrict(rest[:idBytes])
	if err != nil || id.String() != rest[:idBytes] {
		return Presented{}, Refused()
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(rest[idBytes:])
	if err != nil {
		return Presented{}, Refused()
	}
	p.ID, p.hash = id.String(), sha256.Sum256(secret)
	return p, nil
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
		h, err := hex.DecodeString(t.Hash)
		ok = ok && err == nil && copy(want[:], h) == len(want) && len(h) == len(want)
	}
	return subtle.ConstantTimeCompare(want[:], p.hash[:]) == 1 && ok
}

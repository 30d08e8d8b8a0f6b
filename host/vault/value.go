// Package vault keeps secrets sealed and uses them on behalf of guests that never see them.
//
// A secret says how it may be used: as one header toward one place, or as the key of an
// HMAC with a fixed prefix. Anything else, and any secret that is missing or not granted,
// is one and the same SECRET_DENIED. The package refuses to know where records are stored
// and how requests are sent.
package vault

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/ecotone-dev/ecotone/abi"
)

// Bounds of a secret's value, in bytes. Below the minimum a value could be guessed (S15).
const (
	MinValueBytes = 16
	MaxValueBytes = 4 << 10
)

const redacted = "[redacted]"

// Value holds a secret's plaintext and shows it nowhere: formatting, logging and JSON all
// print [redacted] (PF-F5, PF-F7). It is a handle: copies share the bytes, and Wipe
// empties them all. Not safe for concurrent use with Wipe.
type Value struct {
	// A closure, because fmt prints the unexported fields of a struct that holds a Value
	// without asking its methods, and follows pointers when the verb does not fit. Of a
	// function it prints the address.
	get func() *[]byte
}

// NewValue takes a copy of b.
func NewValue(b []byte) Value { return adopt(append([]byte(nil), b...)) }

func adopt(b []byte) Value { return Value{func() *[]byte { return &b }} }

// Reveal returns the bytes themselves. They must not be kept, changed or converted to a
// string that outlives the use.
func (v Value) Reveal() []byte {
	if v.get == nil {
		return nil
	}
	return *v.get()
}

// Len is the length in bytes.
func (v Value) Len() int { return len(v.Reveal()) }

// Wipe overwrites the bytes with zeros and forgets them.
func (v Value) Wipe() {
	if v.get != nil {
		b := v.get()
		clear(*b)
		*b = nil
	}
}

func (Value) String() string               { return redacted }
func (Value) GoString() string             { return redacted }
func (Value) Format(s fmt.State, _ rune)   { _, _ = s.Write([]byte(redacted)) }
func (Value) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Value) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
func (Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalJSON reads a JSON string, so that a request document can hold a Value from the
// moment it is decoded.
func (v *Value) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return abi.Errorf(abi.CodeInvalidJSON, "a secret's value is a JSON string")
	}
	*v = NewValue([]byte(s))
	return nil
}

var (
	_ fmt.Formatter  = Value{}
	_ slog.LogValuer = Value{}
	_ json.Marshaler = Value{}
)

package approval

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// Box seals what approvals keep at rest: the bytes that were asked for, and the answer until it is fetched.
// It is safe for concurrent use.
type Box struct{ keys *vault.Keyring }

// NewBox makes a box under the server's master key.
func NewBox(keys *vault.Keyring) Box { return Box{keys} }

// Part names what is sealed: a part opens as nothing else, and for no other approval.
type Part string

// The parts.
const (
	Input  Part = "input"
	Output Part = "output"
)

// MaxKept bounds a part, in bytes: what one value of the store takes.
const MaxKept = 1 << 20

// The layout of what is sealed: the id of the master key, the nonce, the box.
const (
	keyIDBytes = 16
	nonceBytes = 12
)

// Seal seals a part of an approval.
func (b Box) Seal(org, id string, part Part, plain []byte) []byte {
	v := vault.NewValue(plain)
	defer v.Wipe()
	s := b.keys.Seal(org, nameOf(id, part), 1, v)
	return append(append([]byte(s.Key), s.Nonce...), s.Box...)
}

// Open is what Seal was given for the same part of the same approval.
func (b Box) Open(org, id string, part Part, sealed []byte) ([]byte, error) {
	if len(sealed) < keyIDBytes+nonceBytes {
		return nil, abi.Errorf(abi.CodeInternal, "what an approval keeps is cut")
	}
	s := vault.Sealed{Key: string(sealed[:keyIDBytes]), Nonce: sealed[keyIDBytes : keyIDBytes+nonceBytes], Box: sealed[keyIDBytes+nonceBytes:]}
	v, err := b.keys.Open(org, nameOf(id, part), 1, s)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "what an approval keeps does not open: %w", err)
	}
	return v.Reveal(), nil
}

// nameOf is no secret's name: those are slugs.
func nameOf(id string, part Part) string { return "approval " + string(part) + " " + id }

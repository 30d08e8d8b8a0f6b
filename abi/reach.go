package abi

import "fmt"

// Reach says how far outside itself a capability may act. The vocabulary is
// closed and ordered: owner < integration < platform (X8). The zero value is
// invalid and is never within any ceiling.
type Reach uint8

const (
	// ReachOwner stays within what the invoking subject already holds.
	ReachOwner Reach = iota + 1
	// ReachIntegration may talk to endpoints and use secrets.
	ReachIntegration
	// ReachPlatform may read or change the platform itself.
	ReachPlatform
)

var reachNames = [...]string{ReachOwner: "owner", ReachIntegration: "integration", ReachPlatform: "platform"}

// Reaches lists the vocabulary in ascending order.
func Reaches() []Reach { return []Reach{ReachOwner, ReachIntegration, ReachPlatform} }

// Valid reports whether r is a member of the vocabulary.
func (r Reach) Valid() bool { return r >= ReachOwner && r <= ReachPlatform }

// Within reports whether r is at most ceiling. An invalid operand on either side
// answers false: a reach that is not known is within nothing.
func (r Reach) Within(ceiling Reach) bool { return r.Valid() && ceiling.Valid() && r <= ceiling }

// MinReach returns the narrower of two reaches, or the invalid zero value when
// either operand is invalid.
func MinReach(a, b Reach) Reach {
	if !a.Valid() || !b.Valid() {
		return 0
	}
	return min(a, b)
}

func (r Reach) String() string {
	if !r.Valid() {
		return "invalid"
	}
	return reachNames[r]
}

// ParseReach accepts exactly the three names of the vocabulary.
func ParseReach(s string) (Reach, error) {
	for _, r := range Reaches() {
		if reachNames[r] == s {
			return r, nil
		}
	}
	return 0, Errorf(CodeInvalidRequest, "reach %s is not one of owner, integration, platform", Quote(s))
}

// MarshalText refuses the invalid value, so that it can never be stored by accident.
func (r Reach) MarshalText() ([]byte, error) {
	if !r.Valid() {
		return nil, fmt.Errorf("abi: the zero reach has no text form")
	}
	return []byte(r.String()), nil
}

// UnmarshalText is [ParseReach].
func (r *Reach) UnmarshalText(b []byte) error {
	v, err := ParseReach(string(b))
	if err != nil {
		return err
	}
	*r = v
	return nil
}

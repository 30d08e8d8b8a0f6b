package abi

import "fmt"

// Classification says how sensitive data is. The vocabulary is closed and
// ordered: public < internal < confidential < secret < regulated (X16). The zero
// value is invalid: an unlabelled source counts as regulated, an unlabelled sink
// as public (S3).
type Classification uint8

const (
	Public Classification = iota + 1
	Internal
	Confidential
	Secret
	Regulated
)

var classificationNames = [...]string{
	Public: "public", Internal: "internal", Confidential: "confidential", Secret: "secret", Regulated: "regulated",
}

// Classifications lists the vocabulary in ascending order.
func Classifications() []Classification {
	return []Classification{Public, Internal, Confidential, Secret, Regulated}
}

// Valid reports whether c is a member of the vocabulary.
func (c Classification) Valid() bool { return c >= Public && c <= Regulated }

// Source reads c as the label of something data is read from: invalid is
// [Regulated].
func (c Classification) Source() Classification {
	if !c.Valid() {
		return Regulated
	}
	return c
}

// Sink reads c as the label of something data is written to: invalid is [Public].
func (c Classification) Sink() Classification {
	if !c.Valid() {
		return Public
	}
	return c
}

// FlowsTo reports whether data labelled c may be written to a sink labelled sink.
func (c Classification) FlowsTo(sink Classification) bool { return c.Source() <= sink.Sink() }

// Join is the least upper bound: every operand may raise the result, none can
// lower it (X22). Invalid operands count as [Regulated]. Join of nothing is
// [Public].
func Join(cs ...Classification) Classification {
	out := Public
	for _, c := range cs {
		out = max(out, c.Source())
	}
	return out
}

// Meet is the greatest lower bound, the way ceilings compose: each may restrict,
// none may loosen. Invalid operands count as [Public]. Meet of nothing is
// [Public].
func Meet(cs ...Classification) Classification {
	if len(cs) == 0 {
		return Public
	}
	out := Regulated
	for _, c := range cs {
		out = min(out, c.Sink())
	}
	return out
}

func (c Classification) String() string {
	if !c.Valid() {
		return "invalid"
	}
	return classificationNames[c]
}

// ParseClassification accepts exactly the five names of the vocabulary.
func ParseClassification(s string) (Classification, error) {
	for _, c := range Classifications() {
		if classificationNames[c] == s {
			return c, nil
		}
	}
	return 0, Errorf(CodeInvalidRequest,
		"classification %s is not one of public, internal, confidential, secret, regulated", Quote(s))
}

// MarshalText refuses the invalid value, so that it can never be stored by accident.
func (c Classification) MarshalText() ([]byte, error) {
	if !c.Valid() {
		return nil, fmt.Errorf("abi: the zero classification has no text form")
	}
	return []byte(c.String()), nil
}

// UnmarshalText is [ParseClassification].
func (c *Classification) UnmarshalText(b []byte) error {
	v, err := ParseClassification(string(b))
	if err != nil {
		return err
	}
	*c = v
	return nil
}

package abi_test

import (
	"encoding/json"
	"testing"

	. "github.com/ecotone-dev/ecotone/abi"
)

// The vocabularies are small, so their laws are checked for every combination, the invalid
// values included.
var (
	anyClass = []Classification{0, Public, Internal, Confidential, Secret, Regulated, 6, 255}
	anyReach = []Reach{0, ReachOwner, ReachIntegration, ReachPlatform, 4, 255}
)

func TestClassificationOrder(t *testing.T) { // X16
	names := []string{"public", "internal", "confidential", "secret", "regulated"}
	for i, c := range Classifications() {
		if c.String() != names[i] {
			t.Errorf("level %d is %s", i, c)
		}
		for j, d := range Classifications() {
			if c.FlowsTo(d) != (i <= j) {
				t.Errorf("%s flows to %s: %v", c, d, c.FlowsTo(d))
			}
		}
	}
	if len(Classifications()) != len(names) {
		t.Errorf("there are %d levels", len(Classifications()))
	}
}

func TestClassificationParse(t *testing.T) { // X16
	for _, c := range Classifications() {
		if got, err := ParseClassification(c.String()); err != nil || got != c {
			t.Errorf("%s: %v, %v", c, got, err)
		}
	}
	for _, s := range []string{"", "Public", "PUBLIC", " public", "public ", "top-secret", "invalid", "0", "1", "restricted"} {
		if got, err := ParseClassification(s); CodeOf(err) != CodeInvalidRequest || got.Valid() {
			t.Errorf("%q parses as %v, %v", s, got, err)
		}
	}
	for _, c := range anyClass {
		if _, err := json.Marshal(c); (err == nil) != c.Valid() {
			t.Errorf("%d: stored with error %v", c, err)
		}
	}
}

func TestInvalidLabels(t *testing.T) { // S3
	for _, c := range anyClass {
		if !c.Valid() && (c.Source() != Regulated || c.Sink() != Public) {
			t.Errorf("%d: as source %s, as sink %s", c, c.Source(), c.Sink())
		}
		if c.Valid() && (c.Source() != c || c.Sink() != c) {
			t.Errorf("%s changes when it is read", c)
		}
		var zero Classification
		if zero.FlowsTo(c) != (c == Regulated) {
			t.Errorf("an unlabelled source flows to %v: %v", c, zero.FlowsTo(c))
		}
		if c.FlowsTo(zero) != (c == Public) {
			t.Errorf("%v flows to an unlabelled sink: %v", c, c.FlowsTo(zero))
		}
	}
}

func TestJoinAndMeet(t *testing.T) { // X22
	for _, a := range anyClass {
		if Join(a) != a.Source() || Join(a, a) != a.Source() || Meet(a) != a.Sink() || Meet(a, a) != a.Sink() {
			t.Errorf("%v: not idempotent", a)
		}
		for _, b := range anyClass {
			j, m := Join(a, b), Meet(a, b)
			if !j.Valid() || j < a.Source() || j < b.Source() {
				t.Errorf("join(%v, %v) = %v is below an operand", a, b, j)
			}
			if !m.Valid() || m > a.Sink() || m > b.Sink() {
				t.Errorf("meet(%v, %v) = %v loosens an operand", a, b, m)
			}
			if j != Join(b, a) || m != Meet(b, a) {
				t.Errorf("%v, %v: not commutative", a, b)
			}
			for _, c := range anyClass {
				if Join(a, b, c) != Join(a, Join(b, c)) || Meet(a, b, c) != Meet(a, Meet(b, c)) {
					t.Errorf("%v, %v, %v: not associative", a, b, c)
				}
				// Least and greatest: nothing between the operands and the bound.
				if c.Valid() && c >= a.Source() && c >= b.Source() && c < j {
					t.Errorf("join(%v, %v) = %v is not the least bound", a, b, j)
				}
				// What may leave for the join's sinks may leave for each operand's.
				if c.Valid() && c.FlowsTo(m) && !(c.FlowsTo(a) && c.FlowsTo(b)) {
					t.Errorf("%v passes meet(%v, %v) and not both", c, a, b)
				}
			}
		}
	}
	if Join() != Public || Meet() != Public {
		t.Error("the join or the meet of nothing permits something")
	}
}

func TestReachOrder(t *testing.T) { // X8
	names := []string{"owner", "integration", "platform"}
	for i, r := range Reaches() {
		if r.String() != names[i] {
			t.Errorf("reach %d is %s", i, r)
		}
		for j, ceiling := range Reaches() {
			if r.Within(ceiling) != (i <= j) {
				t.Errorf("%s within %s: %v", r, ceiling, r.Within(ceiling))
			}
		}
	}
	for _, a := range anyReach {
		for _, b := range anyReach {
			if a.Within(b) && (!a.Valid() || !b.Valid()) {
				t.Errorf("%d is within %d", a, b)
			}
			low := MinReach(a, b)
			if low.Valid() != (a.Valid() && b.Valid()) || low != MinReach(b, a) {
				t.Errorf("min(%d, %d) = %d", a, b, low)
			}
			if low.Valid() && !(low.Within(a) && low.Within(b) && (low == a || low == b)) {
				t.Errorf("min(%s, %s) = %s", a, b, low)
			}
		}
	}
}

func TestReachParse(t *testing.T) { // X8
	for _, r := range Reaches() {
		if got, err := ParseReach(r.String()); err != nil || got != r {
			t.Errorf("%s: %v, %v", r, got, err)
		}
	}
	for _, s := range []string{"", "global", "Owner", "owner ", "invalid", "3"} {
		if got, err := ParseReach(s); CodeOf(err) != CodeInvalidRequest || got.Valid() {
			t.Errorf("%q parses as %v, %v", s, got, err)
		}
	}
	for _, r := range anyReach {
		if _, err := json.Marshal(r); (err == nil) != r.Valid() {
			t.Errorf("%d: stored with error %v", r, err)
		}
	}
}

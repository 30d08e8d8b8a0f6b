package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/ecotone-dev/ecotone/abi"
)

// MaxReasons bounds how many places an error lists.
const MaxReasons = 8

const maxCollected = 512

type reason struct{ at, what string }

const notAllowed = "is not allowed here"

// withoutEchoes drops places that are refused only because something at or below them is: what fails
// counts as not evaluated, and then as not allowed.
func withoutEchoes(found []reason) []reason {
	return slices.DeleteFunc(slices.Clone(found), func(r reason) bool {
		return r.what == notAllowed && slices.ContainsFunc(found, func(other reason) bool {
			return other.what != notAllowed && (other.at == r.at || strings.HasPrefix(other.at, r.at+"/"))
		})
	})
}

// verdict turns what the library found into the error that is shown.
func (s *Schema) verdict(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errSpent) {
		return abi.Errorf(abi.CodeInputSchema, "judging the input takes more work than is allowed").
			WithHint("send less, or simplify the schema")
	}
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return abi.Errorf(abi.CodeInternal, "the input could not be judged: %w", err)
	}
	var found []reason
	s.collect(v, &found)
	slices.SortFunc(found, func(a, b reason) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what))
	})
	found = withoutEchoes(slices.Compact(found))
	var b strings.Builder
	for i, r := range found[:min(len(found), MaxReasons)] {
		if i > 0 {
			b.WriteString("; ")
		}
		at := r.at
		if at == "" {
			at = "the document"
		}
		b.WriteString(at + " " + r.what)
	}
	if more := len(found) - MaxReasons; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	out := abi.Errorf(abi.CodeInputSchema, "%s", b.String())
	if len(found) > 0 {
		out.Pointer = found[0].at
	}
	return out
}

// collect gathers the leaves of the tree of errors.
func (s *Schema) collect(v *jsonschema.ValidationError, out *[]reason) {
	if len(*out) >= maxCollected {
		return
	}
	at := clip(pointerOf(v.InstanceLocation))
	add := func(at, format string, args ...any) { *out = append(*out, reason{at, fmt.Sprintf(format, args...)}) }
	switch k := v.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, p := range k.Properties {
			if len(*out) < maxCollected {
				add(clip(pointerOf(v.InstanceLocation)+"/"+escape(p)), "is not a known property")
			}
		}
		return
	case *kind.PropertyNames:
		add(clip(pointerOf(v.InstanceLocation)+"/"+escape(k.Property)), "is not an allowed property name")
		return
	case *kind.Not:
		add(at, "must not satisfy what the schema excludes")
		return
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			add(at, "satisfies more than one of the alternatives")
			return
		}
	}
	if len(v.Causes) > 0 {
		for _, c := range v.Causes {
			s.collect(c, out)
		}
		return
	}
	switch k := v.ErrorKind.(type) {
	case *kind.Type:
		add(at, "must be %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		for _, p := range k.Missing {
			add(at, "lacks property %s", abi.Quote(p))
		}
	case *kind.DependentRequired:
		for _, p := range k.Missing {
			add(at, "lacks property %s, which %s needs", abi.Quote(p), abi.Quote(k.Prop))
		}
	case *kind.FalseSchema:
		add(at, notAllowed)
	case *kind.Enum:
		add(at, "is not one of the allowed values")
	case *kind.Const:
		add(at, "is not the required value")
	case *kind.Format:
		add(at, "is not of format %s", s.names[k.Want])
	case *kind.Pattern:
		add(at, "does not match pattern %s", abi.Quote(k.Want))
	case *kind.MinLength:
		add(at, "has fewer than %d characters", k.Want)
	case *kind.MaxLength:
		add(at, "has more than %d characters", k.Want)
	case *kind.MinItems:
		add(at, "has fewer than %d items", k.Want)
	case *kind.MaxItems:
		add(at, "has more than %d items", k.Want)
	case *kind.MinProperties:
		add(at, "has fewer than %d properties", k.Want)
	case *kind.MaxProperties:
		add(at, "has more than %d properties", k.Want)
	case *kind.UniqueItems:
		add(at, "has items %d and %d equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains, *kind.MinContains:
		add(at, "does not contain enough of the items it must")
	case *kind.MaxContains:
		add(at, "contains too many of some items")
	case *kind.Minimum:
		add(at, "is below the minimum")
	case *kind.ExclusiveMinimum:
		add(at, "is not above the exclusive minimum")
	case *kind.Maximum:
		add(at, "is above the maximum")
	case *kind.ExclusiveMaximum:
		add(at, "is not below the exclusive maximum")
	case *kind.MultipleOf:
		add(at, "is not a multiple of what it must be")
	case *kind.RefCycle:
		add(at, "cannot be judged: the schema refers to itself without end")
	default:
		add(at, "does not satisfy the schema")
	}
}

func pointerOf(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + escape(t))
	}
	return b.String()
}

package space

import (
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Scheme begins every [URI].
const Scheme = "ecotone://"

// URI names a space of an organisation by the chain of spaces around it, from the least to the most
// specific: ecotone://orgs/default/projects/team/sessions/talk (X69). It says where data lives and
// nothing about what may be done with it.
type URI []Segment

// Segment is one space of the chain.
type Segment struct {
	Kind Kind
	ID   string
}

// URIOf is the URI of the last space of a chain, outermost first.
func URIOf(chain ...Space) URI {
	u := make(URI, len(chain))
	for i, s := range chain {
		u[i] = Segment{s.Kind, s.ID}
	}
	return u
}

// IsURI reports whether a name is written as a URI, and not as the id of a space.
func IsURI(name string) bool { return strings.HasPrefix(name, Scheme) }

// ParseURI accepts exactly what [URI.String] writes: the plurals of the closed kinds, each where a space
// of that kind may lie, with an id that a space may have. Anything else is INVALID_REQUEST; whether
// the spaces are there is another question.
func ParseURI(s string) (URI, error) {
	path, ok := strings.CutPrefix(s, Scheme)
	parts := strings.Split(path, "/")
	if !ok || len(parts)%2 != 0 || len(parts) > 2*MaxDepth {
		return nil, malformed(s, "it is not "+Scheme+"orgs/ID/projects/ID …")
	}
	var u URI
	for i := 0; i < len(parts); i += 2 {
		kind, known := singular(parts[i])
		switch within := kinds[kind].within; {
		case !known:
			return nil, malformed(s, abi.Quote(parts[i])+" is not a kind of space")
		case u == nil && within != nil:
			return nil, malformed(s, parts[i]+" lie in something")
		case u != nil && !slices.Contains(within, u[len(u)-1].Kind):
			return nil, malformed(s, parts[i]+" do not lie in "+parts[i-2])
		}
		if _, err := abi.ParseSlug("a space", parts[i+1]); err != nil {
			return nil, err
		}
		u = append(u, Segment{kind, parts[i+1]})
	}
	return u, nil
}

func malformed(s, why string) error {
	return abi.Errorf(abi.CodeInvalidRequest, "%s is not the URI of a space: %s", abi.Quote(s), why).
		WithHint("a URI goes from the least to the most specific space, as ecotone://orgs/default/projects/team")
}

// singular is the kind that a plural stands for.
func singular(plural string) (Kind, bool) {
	kind, ok := strings.CutSuffix(plural, "s")
	_, known := kinds[Kind(kind)]
	return Kind(kind), ok && known
}

// ID is the id of the space itself; "" of an empty URI.
func (u URI) ID() string {
	if len(u) == 0 {
		return ""
	}
	return u[len(u)-1].ID
}

func (u URI) String() string {
	parts := make([]string, 0, 2*len(u))
	for _, s := range u {
		parts = append(parts, string(s.Kind)+"s", s.ID)
	}
	return Scheme + strings.Join(parts, "/")
}

// MarshalText implements [encoding.TextMarshaler].
func (u URI) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

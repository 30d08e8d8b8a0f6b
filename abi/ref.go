package abi

import (
	"regexp"
	"strings"
)

// CapabilityRef names one operation of a biome, as <domain>:<resource>.<verb>@<major>
// (X57), unique per organisation.
type CapabilityRef string

// MaxRefBytes bounds a capability ref.
const MaxRefBytes = 128

// validRef is the grammar of X57 with one canonical spelling of the major:
//
//	word ":" word *( "." word ) "@" major     word = [a-z][a-z0-9-]*     major = 0 | [1-9][0-9]{0,8}
//
// It is written out because every request is asked; the test holds it to the grammar's expression.
func validRef(s string) bool {
	rest, ok := cutWord(s)
	for sep := byte(':'); ok && rest != "" && rest[0] == sep; sep = '.' {
		rest, ok = cutWord(rest[1:])
		if ok && rest != "" && rest[0] == '@' {
			return validMajor(rest[1:])
		}
	}
	return false
}

// cutWord takes a word off the front of s.
func cutWord(s string) (rest string, ok bool) {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '-') {
			continue
		}
		return s[i:], i > 0
	}
	return "", s != ""
}

func validMajor(s string) bool {
	if s == "0" {
		return true
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && s[0] != '0' && len(s) <= 9
}

// ParseCapabilityRef accepts exactly the grammar: one spelling for one capability.
func ParseCapabilityRef(s string) (CapabilityRef, error) {
	if len(s) > MaxRefBytes || !validRef(s) {
		return "", Errorf(CodeInvalidRequest, "%s is not a capability ref", Quote(s)).
			WithHint("a ref looks like kb:page.read@1: domain, resource and verb in lower case, and a major version")
	}
	return CapabilityRef(s), nil
}

// Domain is the part before the colon.
func (r CapabilityRef) Domain() string { d, _, _ := strings.Cut(string(r), ":"); return d }

// UnmarshalText is [ParseCapabilityRef].
func (r *CapabilityRef) UnmarshalText(b []byte) error {
	v, err := ParseCapabilityRef(string(b))
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// EnvironmentRef names an environment on the wire, as environment:<slug> (X3).
type EnvironmentRef string

var slugGrammar = regexp.MustCompile(`^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidSlug reports whether s may name an environment, org, space, biome, endpoint or secret:
// 1 to 63 bytes of lower case, digits and inner hyphens, starting with a letter.
func ValidSlug(s string) bool { return slugGrammar.MatchString(s) }

// ParseSlug is [ValidSlug] as an error that names what was expected.
func ParseSlug(what, s string) (string, error) {
	if !ValidSlug(s) {
		return "", Errorf(CodeInvalidRequest, "%s is not a name for %s", Quote(s), what).
			WithHint("1 to 63 bytes of lower case letters, digits and inner hyphens, starting with a letter")
	}
	return s, nil
}

const environmentPrefix = "environment:"

// MakeEnvironmentRef builds a ref from a slug that is known to be valid.
func MakeEnvironmentRef(slug string) EnvironmentRef { return EnvironmentRef(environmentPrefix + slug) }

// ParseEnvironmentRef accepts exactly environment:<slug>.
func ParseEnvironmentRef(s string) (EnvironmentRef, error) {
	slug, ok := strings.CutPrefix(s, environmentPrefix)
	if !ok || !ValidSlug(slug) {
		return "", Errorf(CodeInvalidRequest, "%s is not an environment ref", Quote(s)).
			WithHint("a ref looks like environment:sandbox")
	}
	return EnvironmentRef(s), nil
}

// Slug is the part after the prefix.
func (r EnvironmentRef) Slug() string { return strings.TrimPrefix(string(r), environmentPrefix) }

// UnmarshalText is [ParseEnvironmentRef].
func (r *EnvironmentRef) UnmarshalText(b []byte) error {
	v, err := ParseEnvironmentRef(string(b))
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// SubjectKind is the closed set of those who may invoke.
type SubjectKind string

const (
	SubjectUser  SubjectKind = "user"
	SubjectAgent SubjectKind = "agent"
	SubjectApp   SubjectKind = "app"
	SubjectBiome SubjectKind = "biome"
)

// Subject is <kind>:<id>. The id has 1 to 128 bytes of letters, digits and . _ @ - and starts
// with a letter or digit.
type Subject string

var subjectGrammar = regexp.MustCompile(`^(user|agent|app|biome):[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$`)

// ParseSubject accepts exactly the grammar.
func ParseSubject(s string) (Subject, error) {
	if !subjectGrammar.MatchString(s) {
		return "", Errorf(CodeInvalidRequest, "%s is not a subject", Quote(s)).
			WithHint("a subject is user:, agent:, app: or biome: and an id of letters, digits and . _ @ -")
	}
	return Subject(s), nil
}

// Kind is the part before the colon.
func (s Subject) Kind() SubjectKind { k, _, _ := strings.Cut(string(s), ":"); return SubjectKind(k) }

// ID is the part after the colon.
func (s Subject) ID() string { _, id, _ := strings.Cut(string(s), ":"); return id }

// UnmarshalText is [ParseSubject].
func (s *Subject) UnmarshalText(b []byte) error {
	v, err := ParseSubject(string(b))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

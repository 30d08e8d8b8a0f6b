package schema

import (
	"encoding/json"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Bounds of a schema.
const (
	MaxDepth       = 48   // nesting of the document
	MaxSubschemas  = 1000 // objects and booleans that are schemas
	MaxPattern     = 256  // bytes of a pattern
	maxProgram     = 1000 // instructions of a compiled pattern (S10)
	maxPrograms    = 8000 // of all patterns together
	maxRefs        = 1000
	draft          = "https://json-schema.org/draft/2020-12/schema"
	inPlaceCost    = 16 // units for judging the same value once more: the way there is searched for loops
	maxNumberBytes = 64
	maxExponent    = 308
)

// node is one subschema.
type node struct {
	object  map[string]any
	pointer string // where it is
	format  string // the format it asked for
	owner   bool   // it describes a value by itself: the root, a property, an item
	asIs    bool

	weight int64 // work of one evaluation that does not depend on the value
	early  int64 // work before the node itself is charged; part of its parent's weight or member
	member int64 // work for each member of the value
	unique bool  // evaluation looks at the whole array, not only at its first level
}

// inspection is what one walk over a schema finds.
type inspection struct {
	nodes    []*node // objects only, in the order they were met
	byPlace  map[string]*node
	places   map[string]bool // booleans too
	anchors  map[string]*node
	refs     []reference
	programs int
	count    int
	numbers  bool // something compares numbers
}

type reference struct {
	from   *node
	at, to string
}

func invalid(at, format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodeSchemaInvalid, format, args...).At(clip(at))
}

// inspect walks a decoded schema and refuses what is not understood.
func inspect(doc any) (*inspection, *abi.Error) {
	in := &inspection{byPlace: map[string]*node{}, places: map[string]bool{}, anchors: map[string]*node{}}
	if err := in.schema(doc, "", true, false); err != nil {
		return nil, err
	}
	for _, r := range in.refs {
		to, err := in.resolve(r.to)
		if err != nil {
			return nil, err.At(clip(r.at))
		}
		r.from.weight += inPlaceCost
		if to != nil {
			r.from.weight += to.early
		}
	}
	return in, nil
}

func (in *inspection) schema(v any, at string, owner, asIs bool) *abi.Error {
	if in.count++; in.count > MaxSubschemas {
		return invalid(at, "more than %d subschemas", MaxSubschemas)
	}
	in.places[at] = true
	if _, ok := v.(bool); ok {
		return nil
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return invalid(at, "a schema is an object or a boolean")
	}
	n := &node{object: obj, pointer: at, owner: owner, asIs: asIs, weight: 1}
	in.nodes = append(in.nodes, n)
	in.byPlace[at] = n
	for _, name := range sortedKeys(obj) {
		if strings.HasPrefix(name, "x-") {
			continue
		}
		here := at + "/" + escape(name)
		k, ok := keywords[name]
		if !ok {
			err := invalid(here, "keyword %s is not understood", abi.Quote(name))
			return err.WithHint(hints[name])
		}
		if err := in.keyword(n, k, name, here, obj[name]); err != nil {
			return err
		}
	}
	return nil
}

func (in *inspection) keyword(n *node, k keyword, name, here string, v any) *abi.Error {
	owner, asIs := !k.inPlace && k.shape != defs, n.asIs || k.asIs
	switch k.shape {
	case one:
		n.weight++
		if err := in.schema(v, here, owner, asIs); err != nil {
			return err
		}
		n.apply(in.byPlace[here], k)
		return nil
	case many:
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return invalid(here, "%s is a non-empty array of schemas", name)
		}
		n.weight += int64(len(list))
		for i, sub := range list {
			place := here + "/" + itoa(i)
			if err := in.schema(sub, place, owner, asIs); err != nil {
				return err
			}
			n.apply(in.byPlace[place], k)
		}
		return nil
	case named, defs:
		subs, ok := v.(map[string]any)
		if !ok {
			return invalid(here, "%s is an object of schemas", name)
		}
		n.weight += int64(len(subs)) / 4
		for _, key := range sortedKeys(subs) {
			if name == "patternProperties" {
				if err := in.pattern(here+"/"+escape(key), key); err != nil {
					return err
				}
			}
			place := here + "/" + escape(key)
			if err := in.schema(subs[key], place, owner, asIs); err != nil {
				return err
			}
			if k.shape == named {
				n.apply(in.byPlace[place], k)
			}
		}
		return nil
	}
	return in.value(n, name, here, v)
}

// apply takes over the work that a subschema does before it is charged for: a value that is not in a
// list of constants was compared with all of them.
func (n *node) apply(sub *node, k keyword) {
	if k.inPlace {
		n.weight += inPlaceCost
	}
	switch {
	case sub == nil:
	case k.each:
		n.member += sub.early
	default:
		n.weight += sub.early
	}
}

// value checks the keywords that hold no schema and need more than the meta-schema says.
func (in *inspection) value(n *node, name, here string, v any) *abi.Error {
	s, isString := v.(string)
	switch name {
	case "$schema":
		if strings.TrimSuffix(s, "#") != draft {
			return invalid(here, "only draft 2020-12 is understood").WithHint(`leave $schema out or write "` + draft + `"`)
		}
	case "$id":
		if n.pointer != "" || !isString {
			return invalid(here, "$id may name the schema at its root and nothing else")
		}
	case "$ref", "$dynamicRef":
		if !isString || !strings.HasPrefix(s, "#") {
			return invalid(here, "a reference stays inside the schema").WithHint("references look like #/$defs/name or #anchor")
		}
		if in.refs = append(in.refs, reference{n, here, s}); len(in.refs) > maxRefs {
			return invalid(here, "more than %d references", maxRefs)
		}
	case "$anchor", "$dynamicAnchor":
		if !isString || s == "" || in.anchors[s] != nil {
			return invalid(here, "%s is a name that is used once", name)
		}
		in.anchors[s] = n
	case "pattern":
		if !isString {
			return invalid(here, "pattern is a string")
		}
		return in.pattern(here, s)
	case "format":
		if !formats[s] {
			return invalid(here, "format %s is not known", abi.Quote(s)).WithHint("a format that is not known could not be enforced")
		}
		n.format = s
	case "enum", "const":
		data, _ := json.Marshal(v) // comparing costs at most what the schema's side holds
		n.early += int64(len(data)) / 4
	case "uniqueItems":
		n.unique = v == true
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		n.weight += 4 // exact arithmetic
	case "required":
		if list, ok := v.([]any); ok {
			n.weight += int64(len(list)) / 4
		}
	}
	in.numbers = in.numbers || comparesNumbers(name, v)
	if !numbersInRange(v) {
		return invalid(here, "a number has more than %d digits or an exponent over %d", maxNumberBytes, maxExponent)
	}
	return nil
}

// pattern bounds a regular expression before anything runs it.
func (in *inspection) pattern(here, p string) *abi.Error {
	if len(p) > MaxPattern {
		return invalid(here, "the pattern has %d bytes; at most %d are allowed", len(p), MaxPattern)
	}
	n, err := programSize(p)
	if err != nil {
		return invalid(here, "the pattern is not an RE2 expression: %w", err).WithHint("look-around and back-references are not available")
	}
	if in.programs += n; n > maxProgram || in.programs > maxPrograms {
		return invalid(here, "the pattern compiles to %d instructions; at most %d, and %d for the whole schema, are allowed", n, maxProgram, maxPrograms)
	}
	return nil
}

func programSize(p string) (int, error) {
	if _, err := regexp.Compile(p); err != nil {
		return 0, err
	}
	re, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// resolve finds what a reference means. The target must be a place that is a schema.
func (in *inspection) resolve(ref string) (*node, *abi.Error) {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, invalid("", "the reference is malformed")
	}
	if fragment == "" || strings.HasPrefix(fragment, "/") {
		if in.places[fragment] {
			return in.byPlace[fragment], nil
		}
	} else if n := in.anchors[fragment]; n != nil {
		return n, nil
	}
	return nil, invalid("", "the reference %s leads to no schema", abi.Quote(ref))
}

// comparesNumbers reports whether a keyword looks at the value of a number, and not only at its
// being one.
func comparesNumbers(name string, v any) bool {
	switch name {
	case "const", "enum", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return true
	case "type":
		list, _ := v.([]any)
		return v == "integer" || slices.Contains(list, any("integer"))
	}
	return false
}

// numbersInRange bounds the numbers of a value. They are compared exactly, and an exact 1e999999999
// does not fit into memory.
func numbersInRange(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return numberInRange(string(v))
	case []any:
		for _, e := range v {
			if !numbersInRange(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !numbersInRange(e) {
				return false
			}
		}
	}
	return true
}

func numberInRange(s string) bool {
	if len(s) > maxNumberBytes {
		return false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, err := strconv.Atoi(s[i+1:])
		return err == nil && exp >= -maxExponent && exp <= maxExponent
	}
	return true
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func escape(token string) string { return escaper.Replace(token) }

// clip bounds a pointer that is shown.
func clip(p string) string {
	if len(p) > 256 {
		p = p[:256]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(p, "�"))
}

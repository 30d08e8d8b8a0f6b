package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ecotone-dev/ecotone/abi"
)

// maxWork bounds one validation. A unit is a subschema applied to a value, a handful of members
// looked at, or 32 steps of a pattern: some tens of nanoseconds. Ordinary inputs of 1 MiB
// need a tenth of it.
const maxWork = 4_000_000

// maxCopies bounds how many validations of one schema run at once; others wait.
const maxCopies = 4

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	doc   any // closed, with a mark on every node
	nodes []*node
	exact bool // numbers are compared, so they must be of a size that can be compared exactly
	any   bool // it refuses no value, and looks at none

	free  chan *machine
	mu    sync.Mutex
	made  int
	names map[string]string // format marks to what the schema's author wrote
}

// Check reports why raw cannot be a schema here, or nil. It is what admission asks.
func Check(raw []byte) error {
	_, err := Compile(raw)
	return err
}

// Compile makes a schema of a JSON document. Errors have code SCHEMA_INVALID and the JSON pointer of
// what is wrong. Work and memory are bounded by the size of raw.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > abi.MaxSchemaBytes {
		return nil, invalid("", "the schema has %d bytes; at most %d are allowed", len(raw), abi.MaxSchemaBytes)
	}
	if err := abi.CheckJSON(raw, MaxDepth); err != nil {
		e := abi.AsError(err)
		return nil, invalid(e.Pointer, "%s", e.Message).WithCause(e.Cause)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, invalid("", "the schema is not JSON: %w", err)
	}
	in, bad := inspect(doc)
	if bad != nil {
		return nil, bad
	}
	if root := in.byPlace[""]; root != nil {
		delete(root.object, "$id") // a name; references do not go through it
		delete(root.object, "$schema")
	}
	in.closeObjects()
	s := &Schema{doc: doc, nodes: in.nodes, exact: in.numbers, any: !in.numbers && admitsAll(doc), free: make(chan *machine, maxCopies), names: map[string]string{}}
	for i, n := range s.nodes {
		mark := "node " + itoa(i)
		n.object["format"] = mark
		s.names[mark] = n.format
	}
	m, err := s.machine()
	if err != nil {
		return nil, compileError(err)
	}
	s.made = 1
	s.free <- m
	return s, nil
}

// compileError says where the meta-schema was not satisfied.
func compileError(err error) error {
	var bad *jsonschema.SchemaValidationError
	if errors.As(err, &bad) {
		var v *jsonschema.ValidationError
		if errors.As(bad.Err, &v) {
			for len(v.Causes) > 0 {
				v = v.Causes[0]
			}
			return invalid(pointerOf(v.InstanceLocation), "the value does not have the form its keyword needs: %w", err)
		}
	}
	return invalid("", "the schema does not compile: %w", err)
}

// machine is one copy of the compiled schema together with the budget that its evaluation draws on.
// The library has no hook that is given the evaluation it is part of, so a copy serves one
// evaluation at a time.
type machine struct {
	schema *jsonschema.Schema
	left   int64
}

// spent is panicked through the library when the budget is gone: an error could be turned into success
// by a not above it.
type spent struct{}

func (m *machine) charge(units int64) {
	if m.left -= units; m.left < 0 {
		panic(spent{})
	}
}

const location = "schema:biome"

// machine compiles a copy. Every object in the schema has a format of its own, which is how each
// evaluation is charged before it goes further down.
func (s *Schema) machine() (m *machine, err error) {
	defer budget(&err) // the meta-schema's patterns may be charged too
	m = &machine{left: maxWork}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is loaded, not even file:// (which is the default)
	c.AssertFormat()
	c.UseRegexpEngine(func(p string) (jsonschema.Regexp, error) {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, err
		}
		size, err := programSize(p)
		return &pattern{re, int64(size), m}, err
	})
	for i, n := range s.nodes {
		check := formatCheck(n.format)
		mark := "node " + itoa(i)
		c.RegisterFormat(&jsonschema.Format{Name: mark, Validate: func(v any) error {
			m.charge(n.cost(v))
			return check(v)
		}})
	}
	if err := c.AddResource(location, s.doc); err != nil {
		return nil, err
	}
	sch, err := c.Compile(location)
	m.schema = sch
	return m, err
}

// cost is what applying a node to a value costs, without what its subschemas cost.
func (n *node) cost(v any) int64 {
	switch v := v.(type) {
	case map[string]any:
		return n.weight + int64(len(v))*(1+n.member)
	case []any:
		units := n.weight + int64(len(v))*(1+n.member)
		if n.unique {
			units += size(v)
		}
		return units
	case string:
		return n.weight + int64(len(v))/64
	}
	return n.weight
}

// size is the number of values in v.
func size(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += 1 + size(e)
		}
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case string:
		n += int64(len(v)) / 64
	}
	return n
}

// pattern is a regular expression that is charged for.
type pattern struct {
	*regexp.Regexp
	size int64
	m    *machine
}

func (p *pattern) MatchString(s string) bool {
	p.m.charge(1 + p.size*int64(len(s))/32)
	return p.Regexp.MatchString(s)
}

// library holds the formats' checks as the library has them.
var library = func() map[string]func(any) error {
	out := map[string]func(any) error{"": func(any) error { return nil }}
	for name := range formats {
		c := jsonschema.NewCompiler()
		c.UseLoader(jsonschema.SchemeURLLoader{})
		c.AssertFormat()
		if err := c.AddResource(location, map[string]any{"format": name}); err != nil {
			panic(err)
		}
		out[name] = c.MustCompile(location).Format.Validate
	}
	return out
}()

func formatCheck(name string) func(any) error { return library[name] }

// acquire takes a copy, making one if there are few.
func (s *Schema) acquire() (*machine, error) {
	select {
	case m := <-s.free:
		return m, nil
	default:
	}
	s.mu.Lock()
	more := s.made < maxCopies
	if more {
		s.made++
	}
	s.mu.Unlock()
	if !more {
		return <-s.free, nil
	}
	m, err := s.machine()
	if err != nil {
		s.mu.Lock()
		s.made--
		s.mu.Unlock()
	}
	return m, err
}

// admitsAll reports whether a schema has nothing to refuse a value by.
func admitsAll(doc any) bool {
	object, ok := doc.(map[string]any)
	if !ok {
		return doc == true
	}
	for name := range object {
		if !strings.HasPrefix(name, "x-") && !keywords[name].silent {
			return false
		}
	}
	return true
}

// Validate reports whether input, a JSON document, satisfies the schema. It first refuses what is not
// exactly one JSON value without duplicate keys, with INVALID_JSON (PF-A9). What does not satisfy the schema is
// INPUT_SCHEMA_VIOLATION: the message lists up to [MaxReasons] places and what is wrong there,
// the pointer is the first place; values are never repeated. A number is held to what can be
// compared exactly only where the schema compares numbers; elsewhere it is not looked at.
//
// A schema that refuses nothing costs one look at the input and no allocation.
func (s *Schema) Validate(input []byte) error {
	if err := abi.CheckJSON(input, abi.StrictMaxDepth); err != nil || s.any {
		return err
	}
	v := decode(input)
	if at, ok := s.numberPlace(v); !ok {
		return abi.Errorf(abi.CodeInputSchema, "a number has more than %d digits or an exponent over %d", maxNumberBytes, maxExponent).At(clip(at))
	}
	m, err := s.acquire()
	if err != nil {
		return abi.Errorf(abi.CodeInternal, "the schema could not be prepared: %w", err)
	}
	defer func() { s.free <- m }()
	return s.verdict(m.run(v))
}

// fuelPerUnit is what a unit of work is in fuel, of which a guest burns about twenty in a nanosecond.
const fuelPerUnit = 600

// Price is what judging an input of so many bytes is charged, in fuel: by the product of the bytes and
// of the schema's size, and at most by what one validation may cost at all (S10). It is an estimate, and
// the same every time: the work itself is not, where a schema's branches can be left early.
func (s *Schema) Price(bytes int) int64 {
	return fuelPerUnit * min(int64(max(len(s.nodes), 1))*(1+int64(bytes)/256), maxWork)
}

var errSpent = errors.New("schema: the work is used up")

// budget, deferred, makes an error of the panic that ends an evaluation.
func budget(err *error) {
	switch p := recover(); p.(type) {
	case nil:
	case spent:
		*err = errSpent
	default:
		panic(p)
	}
}

func (m *machine) run(v any) (err error) {
	defer budget(&err)
	m.left = maxWork
	return m.schema.Validate(v)
}

// numberPlace finds a number that cannot be compared, where numbers are.
func (s *Schema) numberPlace(v any) (string, bool) {
	if !s.exact {
		return "", true
	}
	return numberPlace(v, "")
}

// numberPlace finds a number that is out of range.
func numberPlace(v any, at string) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return at, numberInRange(string(v))
	case []any:
		for i, e := range v {
			if !numbersInRange(e) {
				return numberPlace(e, at+"/"+itoa(i))
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if !numbersInRange(v[k]) {
				return numberPlace(v[k], at+"/"+escape(k))
			}
		}
	}
	return "", true
}

func itoa(i int) string { return strconv.Itoa(i) }

package abi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Manifest is what a biome says of itself, embedded as the custom section
// [ManifestSection]. It names no environment, no grant and no publisher: those are not a
// biome's to give (X4).
type Manifest struct {
	Name     string       `json:"name"`    // the biome's id within an organisation, a slug
	Version  string       `json:"version"` // semantic version, for people
	ABI      Face         `json:"abi"`     // the doors the module was built for
	Provides []Descriptor `json:"provides"`
	Requires Requires     `json:"requires,omitzero"`
	Examples []Example    `json:"examples,omitempty"`
	Freeze   Freeze       `json:"freeze,omitempty"`
}

// Descriptor describes one capability (X58). Provenance is stamped at upload, never declared.
type Descriptor struct {
	Ref                  CapabilityRef     `json:"ref"`
	Export               string            `json:"export"`
	Title                string            `json:"title"`
	Summary              string            `json:"summary"`
	SideEffects          string            `json:"sideEffects"`
	InputSchema          json.RawMessage   `json:"inputSchema"`
	OutputSchema         json.RawMessage   `json:"outputSchema"`
	RiskTier             RiskTier          `json:"riskTier"`
	RequiresApproval     bool              `json:"requiresApproval,omitempty"`
	Examples             []json.RawMessage `json:"examples,omitempty"`
	OutputClassification Classification    `json:"outputClassification"`
	Reach                Reach             `json:"reach"`

	// Arguments are those of a command, after its name: what tells apart the capabilities that one
	// [ExportStart] serves.
	Arguments []string `json:"arguments,omitempty"`
	// InputEncoding and OutputEncoding are a foreign guest's; empty is [EncodingJSON]. Schemas judge
	// the JSON, before it is decoded and after it is encoded.
	InputEncoding  Encoding `json:"inputEncoding,omitempty"`
	OutputEncoding Encoding `json:"outputEncoding,omitempty"`
}

// Requires is what a biome asks for. The install grant, not this list, is what counts at
// run time.
type Requires struct {
	Capabilities []CapabilityRef `json:"capabilities,omitempty"`
	Endpoints    []Need          `json:"endpoints,omitempty"`
	Secrets      []Need          `json:"secrets,omitempty"`
}

// Need names an endpoint or secret of the organisation and says why it is wanted.
type Need struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Example is an invocation that admission may try in a sandbox.
type Example struct {
	Ref   CapabilityRef   `json:"ref"`
	Input json.RawMessage `json:"input"`
}

// RiskTier is how much harm a capability can do, as its author sees it.
type RiskTier string

const (
	RiskLow      RiskTier = "low"
	RiskMedium   RiskTier = "medium"
	RiskHigh     RiskTier = "high"
	RiskCritical RiskTier = "critical"
)

// Freeze says how a module may be started: from a frozen image when possible (auto), from an
// image remade with fresh seed (seeded), or by initialising for each invocation (never).
type Freeze string

const (
	FreezeAuto   Freeze = "auto"
	FreezeSeeded Freeze = "seeded"
	FreezeNever  Freeze = "never"
)

// Bounds of a manifest, beyond which it is refused.
const (
	MaxManifestBytes = 256 << 10
	MaxProvides      = 64
	MaxRequires      = 64
	MaxExamples      = 20
	MaxTitle         = 200
	MaxSummary       = 1000
	MaxSideEffects   = 1000
	MaxWhy           = 300
	MaxSchemaBytes   = 64 << 10
	MaxVersionBytes  = 64
	MaxExportBytes   = 128
	MaxArguments     = 64
	MaxArgumentBytes = 1 << 10
)

var versionGrammar = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// ReservedNames cannot be a biome's name (PF-A9).
var ReservedNames = []string{"admin", "api", "default", "ecotone", "gateway", "host", "org", "system"}

// ManifestProblems lists everything wrong with a manifest.
type ManifestProblems []*Error

func (p ManifestProblems) Error() string {
	var b strings.Builder
	for i, e := range p {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// MaxManifestProblems bounds how many problems of one manifest are listed.
const MaxManifestProblems = 100

// DecodeManifest reads a manifest strictly and checks all that can be checked without the
// module: unknown and duplicate fields, grammars, bounds and cross references. Problems come
// all at once, at most [MaxManifestProblems], each with a JSON pointer and a code:
// [CodeUnknownField] for a field the contract does not name (an environment, a grant, a
// publisher: X4), [CodeManifestInvalid] for the rest. A document that is not JSON of the right
// types is not looked at beyond the place where that shows. Schemas are compiled by the caller.
func DecodeManifest(data []byte) (*Manifest, ManifestProblems) {
	if len(data) > MaxManifestBytes {
		return nil, ManifestProblems{Errorf(CodeManifestInvalid, "the manifest has %d bytes; at most %d are read", len(data), MaxManifestBytes)}
	}
	c := &manifestCheck{}
	var w wireManifest
	if err := decodeStrict(data, &w, c.problem); err != nil {
		e := AsError(err)
		c.problem(&Error{Code: CodeManifestInvalid, Message: e.Message, Hint: e.Hint, Pointer: e.Pointer, Cause: err})
		return nil, c.problems
	}
	m := c.words(&w)
	if m.Freeze == "" {
		m.Freeze = FreezeAuto
	}
	c.manifest(m)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return m, nil
}

// The wire types hold vocabulary words as text, so that one bad word does not hide the
// problems behind it. Their fields hide those of the structs they embed.
type (
	wireManifest struct {
		Manifest
		Provides []wireDescriptor `json:"provides"`
		Requires wireRequires     `json:"requires"`
		Examples []wireExample    `json:"examples"`
	}
	wireDescriptor struct {
		Descriptor
		Ref                  string `json:"ref"`
		OutputClassification string `json:"outputClassification"`
		Reach                string `json:"reach"`
	}
	wireRequires struct {
		Requires
		Capabilities []string `json:"capabilities"`
	}
	wireExample struct {
		Example
		Ref string `json:"ref"`
	}
)

type manifestCheck struct{ problems ManifestProblems }

func (c *manifestCheck) problem(e *Error) {
	if len(c.problems) < MaxManifestProblems {
		c.problems = append(c.problems, e)
	}
}

func (c *manifestCheck) add(pointer, format string, args ...any) {
	c.problem(Errorf(CodeManifestInvalid, format, args...).At(pointer))
}

// words parses every vocabulary word. A missing or bad one is a problem and leaves the
// invalid zero value behind.
func (c *manifestCheck) words(w *wireManifest) *Manifest {
	m := w.Manifest
	for i := range w.Provides {
		from, at := &w.Provides[i], fmt.Sprintf("/provides/%d", i)
		d := from.Descriptor
		d.Ref = word(c, at+"/ref", from.Ref, ParseCapabilityRef)
		d.OutputClassification = word(c, at+"/outputClassification", from.OutputClassification, ParseClassification)
		d.Reach = word(c, at+"/reach", from.Reach, ParseReach)
		m.Provides = append(m.Provides, d)
	}
	m.Requires = w.Requires.Requires
	for i, ref := range w.Requires.Capabilities {
		m.Requires.Capabilities = append(m.Requires.Capabilities,
			word(c, fmt.Sprintf("/requires/capabilities/%d", i), ref, ParseCapabilityRef))
	}
	for i, from := range w.Examples {
		e := from.Example
		e.Ref = word(c, fmt.Sprintf("/examples/%d/ref", i), from.Ref, ParseCapabilityRef)
		m.Examples = append(m.Examples, e)
	}
	return &m
}

func word[T any](c *manifestCheck, pointer, s string, parse func(string) (T, error)) T {
	v, err := parse(s)
	switch {
	case s == "":
		c.add(pointer, "is missing")
	case err != nil:
		e := AsError(err)
		c.problem(&Error{Code: CodeManifestInvalid, Message: e.Message, Hint: e.Hint, Pointer: pointer, Cause: err})
	}
	return v
}

func (c *manifestCheck) text(pointer, s string, maxBytes int, required bool) {
	switch {
	case required && strings.TrimSpace(s) == "":
		c.add(pointer, "must not be empty")
	case len(s) > maxBytes:
		c.add(pointer, "has %d bytes; at most %d are allowed", len(s), maxBytes)
	case hasControl(s):
		c.add(pointer, "has control or bidirectional formatting characters")
	}
}

func hasControl(s string) bool {
	for _, r := range s {
		if r != '\n' && r != '\t' && controlRune(r) {
			return true
		}
	}
	return false
}

// controlRune also finds the characters that reorder displayed text (S17).
func controlRune(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0,
		r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	}
	return false
}

func (c *manifestCheck) manifest(m *Manifest) {
	if !ValidSlug(m.Name) {
		c.add("/name", "%s is not a biome name: lower case letters, digits and inner hyphens, at most 63 bytes", Quote(m.Name))
	}
	for _, r := range ReservedNames {
		if m.Name == r {
			c.add("/name", "the name %q is reserved", r)
		}
	}
	if len(m.Version) > MaxVersionBytes || !versionGrammar.MatchString(m.Version) {
		c.add("/version", "%s is not a semantic version", Quote(m.Version))
	}
	face := c.face(m)
	if n := len(m.Provides); n == 0 || n > MaxProvides {
		c.add("/provides", "a biome provides 1 to %d capabilities, this one %d", MaxProvides, n)
	}
	refs := map[CapabilityRef]bool{}
	serves := map[string]bool{}
	for i := range m.Provides {
		d := &m.Provides[i]
		at := fmt.Sprintf("/provides/%d", i)
		if d.Ref != "" && refs[d.Ref] {
			c.add(at+"/ref", "%s is provided twice", Quote(string(d.Ref)))
		}
		how := strings.Join(append([]string{d.Export}, d.Arguments...), "\x00")
		if d.Export != "" && serves[how] {
			c.add(at+"/export", "export %s serves two capabilities in the same way", Quote(d.Export))
		}
		refs[d.Ref], serves[how] = true, true
		c.descriptor(at, d)
		c.foreign(at, face, d)
	}
	c.requires(&m.Requires)
	if len(m.Examples) > MaxExamples {
		c.add("/examples", "at most %d examples", MaxExamples)
	}
	for i, e := range m.Examples {
		if e.Ref != "" && !refs[e.Ref] {
			c.add(fmt.Sprintf("/examples/%d/ref", i), "%s is not provided here", Quote(string(e.Ref)))
		}
		if len(e.Input) == 0 {
			c.add(fmt.Sprintf("/examples/%d/input", i), "is missing")
		}
	}
	switch m.Freeze {
	case FreezeAuto, FreezeSeeded, FreezeNever:
	default:
		c.add("/freeze", "%s is not one of auto, seeded, never", Quote(string(m.Freeze)))
	}
}

func (c *manifestCheck) descriptor(at string, d *Descriptor) {
	if d.Export == "" || len(d.Export) > MaxExportBytes || hasControl(d.Export) {
		c.add(at+"/export", "an export has 1 to %d printable bytes", MaxExportBytes)
	}
	switch d.Export {
	case ExportMemory, ExportInitialize:
		c.add(at+"/export", "%q is not a capability", d.Export)
	}
	if strings.HasPrefix(d.Export, ReservedPrefix) {
		c.add(at+"/export", "names beginning with %q are reserved for the host", ReservedPrefix)
	}
	c.text(at+"/title", d.Title, MaxTitle, true)
	c.text(at+"/summary", d.Summary, MaxSummary, true)
	c.text(at+"/sideEffects", d.SideEffects, MaxSideEffects, false)
	c.schema(at+"/inputSchema", d.InputSchema)
	c.schema(at+"/outputSchema", d.OutputSchema)
	switch d.RiskTier {
	case RiskLow, RiskMedium, RiskHigh, RiskCritical:
	default:
		c.add(at+"/riskTier", "%s is not one of low, medium, high, critical", Quote(string(d.RiskTier)))
	}
	if len(d.Examples) > MaxExamples {
		c.add(at+"/examples", "at most %d examples", MaxExamples)
	}
}

func (c *manifestCheck) schema(at string, raw json.RawMessage) {
	switch {
	case len(raw) == 0:
		c.add(at, "is missing")
	case len(raw) > MaxSchemaBytes:
		c.add(at, "has %d bytes; at most %d are allowed", len(raw), MaxSchemaBytes)
	case raw[0] != '{':
		c.add(at, "must be a JSON object")
	}
}

func (c *manifestCheck) requires(r *Requires) {
	if len(r.Capabilities) > MaxRequires {
		c.add("/requires/capabilities", "at most %d", MaxRequires)
	}
	seen := map[string]bool{}
	for i, ref := range r.Capabilities {
		if ref != "" && seen[string(ref)] {
			c.add(fmt.Sprintf("/requires/capabilities/%d", i), "%s is listed twice", Quote(string(ref)))
		}
		seen[string(ref)] = true
	}
	c.needs("/requires/endpoints", r.Endpoints)
	c.needs("/requires/secrets", r.Secrets)
}

func (c *manifestCheck) needs(at string, needs []Need) {
	if len(needs) > MaxRequires {
		c.add(at, "at most %d", MaxRequires)
	}
	seen := map[string]bool{}
	for i, n := range needs {
		here := fmt.Sprintf("%s/%d", at, i)
		if !ValidSlug(n.Name) {
			c.add(here+"/name", "%s is not a name", Quote(n.Name))
		}
		if seen[n.Name] {
			c.add(here+"/name", "%s is listed twice", Quote(n.Name))
		}
		seen[n.Name] = true
		c.text(here+"/why", n.Why, MaxWhy, true)
	}
}

// MaxReach is the highest reach any provided capability declares, or invalid when there is none.
func (m *Manifest) MaxReach() Reach {
	var r Reach
	for i := range m.Provides {
		r = max(r, m.Provides[i].Reach)
	}
	return r
}

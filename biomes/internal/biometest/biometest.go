// Package biometest holds a biome's code to its manifest: what a capability takes and gives
// in a test must satisfy the schemas the manifest publishes.
package biometest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/guest/guesttest"
)

// Biome is a biome under test and the host it runs against.
type Biome struct {
	Manifest *abi.Manifest
	Host     *guesttest.Host

	t       *testing.T
	exports map[string]func() int32
	schemas map[abi.CapabilityRef][2]*jsonschema.Schema // input, output
}

// New reads manifest.json of the current folder. exports are the biome's functions by the
// names they are exported under; each must serve a capability, and each capability must have
// one.
func New(t *testing.T, exports map[string]func() int32) *Biome {
	t.Helper()
	data, err := os.ReadFile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m, problems := abi.DecodeManifest(data)
	if problems != nil {
		t.Fatal(problems)
	}
	b := &Biome{Manifest: m, Host: guesttest.New(t), t: t, exports: exports, schemas: map[abi.CapabilityRef][2]*jsonschema.Schema{}}
	if len(exports) != len(m.Provides) {
		t.Errorf("%d exports, %d capabilities", len(exports), len(m.Provides))
	}
	for _, d := range m.Provides {
		if exports[d.Export] == nil {
			t.Errorf("%s: there is no export %q", d.Ref, d.Export)
		}
		b.schemas[d.Ref] = [2]*jsonschema.Schema{b.compile(d.InputSchema), b.compile(d.OutputSchema)}
		for _, input := range d.Examples {
			b.satisfies(d.Ref, 0, input)
		}
	}
	for _, e := range m.Examples {
		b.satisfies(e.Ref, 0, e.Input)
	}
	return b
}

func (b *Biome) compile(schema []byte) *jsonschema.Schema {
	b.t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		b.t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource("mem:///schema", doc); err != nil {
		b.t.Fatal(err)
	}
	s, err := c.Compile("mem:///schema")
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *Biome) satisfies(ref abi.CapabilityRef, which int, data []byte) {
	b.t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		b.t.Errorf("%s: not JSON: %v", ref, err)
		return
	}
	if err := b.schemas[ref][which].Validate(v); err != nil {
		b.t.Errorf("%s: %.300s does not satisfy the manifest: %v", ref, data, err)
	}
}

// Run invokes a capability with an input of any type that has a JSON form. Input and, when it
// succeeds, output must satisfy the manifest.
func (b *Biome) Run(ref string, input any) *guesttest.Outcome {
	b.t.Helper()
	data, ok := input.(string)
	if !ok {
		text, err := json.Marshal(input)
		if err != nil {
			b.t.Fatal(err)
		}
		data = string(text)
	}
	b.satisfies(abi.CapabilityRef(ref), 0, []byte(data))
	return b.Unchecked(ref, data)
}

// Unchecked is [Biome.Run] for input that the schema would refuse.
func (b *Biome) Unchecked(ref, input string) *guesttest.Outcome {
	b.t.Helper()
	for _, d := range b.Manifest.Provides {
		if string(d.Ref) == ref {
			out := b.Host.Run(b.exports[d.Export], input)
			if out.OK() {
				b.satisfies(d.Ref, 1, out.Output)
			} else if out.Failure == nil {
				b.t.Errorf("%s ended with %d, without an output and without saying why", ref, out.Return)
			}
			return out
		}
	}
	b.t.Fatalf("%s is not provided", ref)
	return nil
}

// Into runs a capability that must succeed and decodes its output.
func Into[Out any](b *Biome, ref string, input any) Out {
	b.t.Helper()
	o := b.Run(ref, input)
	var out Out
	if !o.OK() {
		b.t.Fatalf("%s: %v", ref, o.Failure)
	}
	if err := o.Decode(&out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// Refused runs a capability that must fail with the given code of its own.
func (b *Biome) Refused(ref string, input any, code string) {
	b.t.Helper()
	if o := b.Run(ref, input); o.Code() != code {
		b.t.Errorf("%s %.100v: failure %q, want %s", ref, input, o.Code(), code)
	}
}

package schema_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/schema"
)

func mustCompile(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(raw))
	if err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	return s
}

// PF-H2: every keyword that is accepted is enforced.
func TestKeywords(t *testing.T) {
	for _, c := range []struct{ name, schema, good, bad string }{
		{"type string", `{"type":"string"}`, `"a"`, `1`},
		{"type integer", `{"type":"integer"}`, `1.0`, `1.5`},
		{"type number", `{"type":"number"}`, `1.5`, `"1.5"`},
		{"type boolean", `{"type":"boolean"}`, `true`, `"true"`},
		{"type null", `{"type":"null"}`, `null`, `0`},
		{"type array", `{"type":"array"}`, `[]`, `{}`},
		{"type object", `{"type":"object"}`, `{"any":1}`, `[]`},
		{"type list", `{"type":["string","null"]}`, `null`, `1`},
		{"enum", `{"enum":["a",1,null]}`, `1.0`, `"b"`},
		{"const", `{"const":{"a":[1]}}`, `{"a":[1]}`, `{"a":[2]}`},
		{"const branch", `{"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k","n"]}]}`, `{"k":"b","n":1}`, `{"k":"c","n":1}`},
		{"multipleOf", `{"multipleOf":0.01}`, `19.99`, `19.999`},
		{"maximum", `{"maximum":10}`, `10`, `10.000000000000000000001`},
		{"exclusiveMaximum", `{"exclusiveMaximum":10}`, `9.9`, `10`},
		{"minimum", `{"minimum":-1}`, `-1`, `-1.1`},
		{"exclusiveMinimum", `{"exclusiveMinimum":0}`, `0.1`, `0`},
		{"big integers", `{"const":9007199254740993}`, `9007199254740993`, `9007199254740992`},
		{"maxLength", `{"maxLength":2}`, `"éé"`, `"abc"`},
		{"minLength", `{"minLength":2}`, `"ab"`, `"é"`},
		{"pattern", `{"pattern":"^a+$"}`, `"aa"`, `"ab"`},
		{"maxItems", `{"maxItems":1}`, `[1]`, `[1,2]`},
		{"minItems", `{"minItems":1}`, `[1]`, `[]`},
		{"uniqueItems", `{"uniqueItems":true}`, `[1,2,{"a":1}]`, `[{"a":1},2,{"a":1.0}]`},
		{"items", `{"items":{"type":"string"}}`, `["a"]`, `["a",1]`},
		{"prefixItems", `{"prefixItems":[{"type":"string"},{"type":"integer"}]}`, `["a",1,{}]`, `[1,"a"]`},
		{"items after prefix", `{"prefixItems":[{"type":"string"}],"items":false}`, `["a"]`, `["a",1]`},
		{"contains", `{"contains":{"const":1}}`, `[2,1]`, `[2]`},
		{"minContains", `{"contains":{"const":1},"minContains":2}`, `[1,1]`, `[1,2]`},
		{"maxContains", `{"contains":{"const":1},"maxContains":1}`, `[1,2]`, `[1,1]`},
		{"unevaluatedItems", `{"prefixItems":[true],"unevaluatedItems":false}`, `[1]`, `[1,2]`},
		{"maxProperties", `{"maxProperties":1}`, `{"a":1}`, `{"a":1,"b":2}`},
		{"minProperties", `{"minProperties":1}`, `{"a":1}`, `{}`},
		{"required", `{"required":["a"]}`, `{"a":1}`, `{"b":1}`},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `{"a":1,"b":1}`, `{"a":1}`},
		{"dependentSchemas", `{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"b":1}`, `{"a":1}`},
		{"properties", `{"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"patternProperties", `{"patternProperties":{"^n":{"type":"integer"}}}`, `{"n1":1,"x":"x"}`, `{"n1":"x"}`},
		{"additionalProperties", `{"properties":{"a":true},"additionalProperties":{"type":"integer"}}`, `{"a":"x","b":1}`, `{"b":"x"}`},
		{"unevaluatedProperties", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":{"type":"integer"}}`, `{"a":"x","b":1}`, `{"b":"x"}`},
		{"propertyNames", `{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"a":1}`, `{"A":1}`},
		{"allOf", `{"allOf":[{"minimum":1},{"maximum":3}]}`, `2`, `4`},
		{"anyOf", `{"anyOf":[{"const":1},{"const":2}]}`, `2`, `3`},
		{"oneOf", `{"oneOf":[{"minimum":1},{"maximum":3}]}`, `4`, `2`},
		{"not", `{"not":{"type":"string"}}`, `1`, `"a"`},
		{"if then", `{"if":{"minimum":10},"then":{"multipleOf":10}}`, `20`, `25`},
		{"else", `{"if":{"minimum":10},"else":{"const":1}}`, `1`, `2`},
		{"$ref", `{"$defs":{"n":{"type":"integer"}},"items":{"$ref":"#/$defs/n"}}`, `[1]`, `["a"]`},
		{"$ref escaped", `{"$defs":{"a/b c":{"type":"integer"}},"$ref":"#/$defs/a~1b%20c"}`, `1`, `"a"`},
		{"$anchor", `{"$defs":{"n":{"$anchor":"num","type":"integer"}},"$ref":"#num"}`, `1`, `"a"`},
		{"$dynamicRef", `{"$dynamicAnchor":"node","type":"object","properties":{"kids":{"type":"array","items":{"$dynamicRef":"#node"}}}}`, `{"kids":[{"kids":[]}]}`, `{"kids":[{"kids":1}]}`},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`, `{"next":{"next":1}}`},
		{"format date-time", `{"format":"date-time"}`, `"2026-11-29T10:00:00Z"`, `"yesterday"`},
		{"format date", `{"format":"date"}`, `"2026-02-28"`, `"2026-02-30"`},
		{"format time", `{"format":"time"}`, `"10:00:00Z"`, `"25:00:00Z"`},
		{"format duration", `{"format":"duration"}`, `"P1D"`, `"1 day"`},
		{"format email", `{"format":"email"}`, `"a@b.example"`, `"a.b.example"`},
		{"format hostname", `{"format":"hostname"}`, `"a.example"`, `"-a.example"`},
		{"format ipv4", `{"format":"ipv4"}`, `"192.0.2.1"`, `"192.0.2.256"`},
		{"format ipv6", `{"format":"ipv6"}`, `"::1"`, `"::g"`},
		{"format uri", `{"format":"uri"}`, `"https://a.example/"`, `"/a"`},
		{"format uri-reference", `{"format":"uri-reference"}`, `"/a"`, `"\\\\a"`},
		{"format uuid", `{"format":"uuid"}`, `"123e4567-e89b-12d3-a456-426614174000"`, `"123e4567"`},
		{"format json-pointer", `{"format":"json-pointer"}`, `"/a/0"`, `"a"`},
		{"false", `false`, ``, `1`},
		{"true", `true`, `1`, ``},
		{"annotations", `{"title":"t","description":"d","default":1,"examples":[2],"deprecated":true,"readOnly":true,"writeOnly":false,"$comment":"c","x-mine":{"a":1},"type":"integer"}`, `1`, `"a"`},
		{"$schema and $id", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://a.example/s","type":"integer"}`, `1`, `"a"`},
	} {
		s := mustCompile(t, c.schema)
		if c.good != "" {
			if err := s.Validate([]byte(c.good)); err != nil {
				t.Errorf("%s: %s: %v", c.name, c.good, err)
			}
		}
		if c.bad != "" {
			if err := s.Validate([]byte(c.bad)); abi.CodeOf(err) != abi.CodeInputSchema {
				t.Errorf("%s: %s: %v", c.name, c.bad, err)
			}
		}
	}
}

// X59: unknown properties are refused at every level, and the pointer names them; composition, conditions
// and what the author says himself are respected.
func TestUnknownProperties(t *testing.T) {
	for _, c := range []struct {
		name, schema, input string
		at                  string // "": accepted
	}{
		{"top", `{"type":"object","properties":{"a":true}}`, `{"a":1,"path":2}`, "/path"},
		{"none allowed", `{"properties":{}}`, `{"a":1}`, "/a"},
		{"nested", `{"properties":{"a":{"properties":{"b":true}}}}`, `{"a":{"b":1,"c":2}}`, "/a/c"},
		{"item", `{"items":{"properties":{"b":true}}}`, `[{"b":1},{"c/d":2}]`, "/1/c~1d"},
		{"prefix item", `{"prefixItems":[{"properties":{"b":true}}]}`, `[{"c":2}]`, "/0/c"},
		{"map value", `{"additionalProperties":{"properties":{"b":true}}}`, `{"any":{"c":2}}`, "/any/c"},
		{"allOf", `{"allOf":[{"properties":{"a":true}},{"properties":{"b":true}}]}`, `{"a":1,"b":2,"c":3}`, "/c"},
		{"allOf fits", `{"allOf":[{"properties":{"a":true}},{"properties":{"b":true}}]}`, `{"a":1,"b":2}`, ""},
		{"own and branch", `{"properties":{"a":true},"anyOf":[{"properties":{"b":true}},{"properties":{"c":true}}]}`, `{"a":1,"c":2}`, ""},
		{"own and branch unknown", `{"properties":{"a":true},"anyOf":[{"properties":{"b":true}},{"properties":{"c":true}}]}`, `{"a":1,"d":2}`, "/d"},
		{"ref", `{"$defs":{"x":{"properties":{"b":true}}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"a":{"c":2}}`, "/a/c"},
		{"ref fits", `{"$defs":{"x":{"properties":{"b":true}}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"a":{"b":2}}`, ""},
		{"extended ref", `{"$defs":{"x":{"properties":{"b":true}}},"$ref":"#/$defs/x","properties":{"a":true}}`, `{"a":1,"b":2}`, ""},
		{"extended ref unknown", `{"$defs":{"x":{"properties":{"b":true}}},"allOf":[{"$ref":"#/$defs/x"}],"properties":{"a":true}}`, `{"a":1,"c":2}`, "/c"},
		{"anchor", `{"$defs":{"x":{"$anchor":"y","properties":{"b":true}}},"$ref":"#y"}`, `{"c":2}`, "/c"},
		{"ref to an open object", `{"$defs":{"x":{"type":"object"}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"a":{"c":2}}`, ""},
		{"then", `{"properties":{"k":true},"if":{"properties":{"k":{"const":1}}},"then":{"properties":{"b":true}}}`, `{"k":1,"b":2}`, ""},
		{"then not taken", `{"properties":{"k":true},"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"b":true}}}`, `{"k":2,"b":2}`, "/b"},
		{"nested in a branch", `{"anyOf":[{"properties":{"a":{"properties":{"b":true}}}}]}`, `{"a":{"c":1}}`, "/a/c"},
		{"recursive", `{"properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{"x":1}}}`, "/next/next/x"},
		{"not is a condition", `{"not":{"properties":{"a":{"const":1}},"required":["a"]}}`, `{"a":2,"b":3}`, ""},
		{"contains is a condition", `{"contains":{"properties":{"a":{"const":1}},"required":["a"]}}`, `[{"a":1,"b":2}]`, ""},
		{"author says open", `{"properties":{"a":true},"additionalProperties":true}`, `{"b":1}`, ""},
		{"author says pattern", `{"properties":{"a":true},"patternProperties":{"^x":true}}`, `{"b":1}`, ""},
		{"author says unevaluated", `{"properties":{"a":true},"unevaluatedProperties":true}`, `{"b":1}`, ""},
		{"no properties", `{"type":"object"}`, `{"b":1}`, ""},
	} {
		err := mustCompile(t, c.schema).Validate([]byte(c.input))
		if c.at == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if e := abi.AsError(err); e == nil || e.Code != abi.CodeInputSchema || e.Pointer != c.at {
			t.Errorf("%s: %v, want a pointer to %s", c.name, err, c.at)
		}
	}
}

// PF-H3, S10: a schema that is not understood, reaches outside, or is over a bound is refused at
// upload, with the place.
func TestRefusedAtUpload(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	many := make([]string, schema.MaxSubschemas+1)
	for i := range many {
		many[i] = `{"type":"null"}`
	}
	for _, c := range []struct{ name, schema, at string }{
		{"not JSON", `{"type":`, "/type"},
		{"two values", `{} {}`, ""},
		{"duplicate key", `{"type":"string","type":"integer"}`, "/type"},
		{"not a schema", `"string"`, ""},
		{"number", `1`, ""},
		{"unknown keyword", `{"properties":{"a":{"requird":["b"]}}}`, "/properties/a/requird"},
		{"definitions", `{"definitions":{}}`, "/definitions"},
		{"array items", `{"items":[{"type":"string"}]}`, "/items"},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, "/$schema"},
		{"draft 2019", `{"properties":{"a":{"$schema":"https://json-schema.org/draft/2019-09/schema"}}}`, "/properties/a/$schema"},
		{"own meta-schema", `{"$schema":"https://a.example/meta"}`, "/$schema"},
		{"type", `{"properties":{"a":{"type":"strin"}}}`, "/properties/a/type"},
		{"required", `{"required":"a"}`, "/required"},
		{"negative length", `{"minLength":-1}`, "/minLength"},
		{"properties", `{"properties":[]}`, "/properties"},
		{"property", `{"properties":{"a":1}}`, "/properties/a"},
		{"allOf", `{"allOf":[]}`, "/allOf"},
		{"allOf object", `{"allOf":{}}`, "/allOf"},
		{"file reference", `{"$ref":"file://` + secret + `"}`, "/$ref"},
		{"path reference", `{"$ref":"` + secret + `"}`, "/$ref"},
		{"http reference", `{"items":{"$ref":"http://127.0.0.1:1/x"}}`, "/items/$ref"},
		{"meta-schema reference", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "/$ref"},
		{"$id below", `{"properties":{"a":{"$id":"file:///etc/"}}}`, "/properties/a/$id"},
		{"dangling reference", `{"$ref":"#/$defs/none"}`, "/$ref"},
		{"reference to no schema", `{"enum":[{"type":"string"}],"items":{"$ref":"#/enum/0"}}`, "/items/$ref"},
		{"dangling anchor", `{"$ref":"#none"}`, "/$ref"},
		{"bad escape", `{"$ref":"#/%zz"}`, "/$ref"},
		{"anchor twice", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, "/$defs/b/$anchor"},
		{"vocabulary", `{"$vocabulary":{}}`, "/$vocabulary"},
		{"format", `{"format":"regex"}`, "/format"},
		{"format type", `{"format":1}`, "/format"},
		{"long pattern", `{"pattern":"` + strings.Repeat("a", schema.MaxPattern+1) + `"}`, "/pattern"},
		{"large pattern", `{"properties":{"a":{"pattern":"((x{0,30}){0,30}){0,2}"}}}`, "/properties/a/pattern"},
		{"look-ahead", `{"pattern":"(?=a)"}`, "/pattern"},
		{"pattern key", `{"patternProperties":{"(":true}}`, "/patternProperties/("},
		{"many patterns", `{"allOf":[` + strings.Repeat(`{"pattern":"x{900}"},`, 9) + `true]}`, "/allOf/8/pattern"},
		{"many subschemas", `{"anyOf":[` + strings.Join(many, ",") + `]}`, "/anyOf/999"},
		{"deep", strings.Repeat(`{"not":`, 60) + `true` + strings.Repeat(`}`, 60), ""},
		{"large", `{"description":"` + strings.Repeat("a", abi.MaxSchemaBytes) + `"}`, ""},
		{"huge number", `{"maximum":1e999999999}`, "/maximum"},
		{"huge number in enum", `{"enum":[[{"a":1e-999999999}]]}`, "/enum"},
	} {
		err := schema.Check([]byte(c.schema))
		e := abi.AsError(err)
		if e == nil || e.Code != abi.CodeSchemaInvalid {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.name != "deep" && e.Pointer != c.at {
			t.Errorf("%s: at %q, want %q (%s)", c.name, e.Pointer, c.at, e.Message)
		}
		if strings.Contains(e.Message, secret) || strings.Contains(e.Message, "schema:") {
			t.Errorf("%s: the message tells too much: %s", c.name, e.Message)
		}
	}
	if err := schema.Check([]byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)); err != nil {
		t.Error(err)
	}
}

// PF-A9, X59: the document itself is checked first.
func TestInputDocument(t *testing.T) {
	s := mustCompile(t, `{"properties":{"path":{"type":"string"}}}`)
	for _, in := range []string{
		`{"path":"ok","path":"secret"}`, `{"path":"ok"} {}`, `{"path":`, ``, "{\"path\":\"\xff\"}",
		strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		if err := s.Validate([]byte(in)); abi.CodeOf(err) != abi.CodeInvalidJSON {
			t.Errorf("%.40q: %v", in, err)
		}
	}
	for in, at := range map[string]string{
		`{"n":[1,1e999999999]}`: "/n/1", `{"n":1e-400}`: "/n", `{"n":` + strings.Repeat("9", 65) + `}`: "/n",
	} {
		for _, comparing := range []string{`{"properties":{"m":{"const":1}}}`, `{"properties":{"m":{"type":["integer","null"]}}}`, `{"$defs":{"a":{"minimum":1}}}`, `{"uniqueItems":true}`} {
			if e := abi.AsError(mustCompile(t, comparing).Validate([]byte(in))); e == nil || e.Code != abi.CodeInputSchema || e.Pointer != at {
				t.Errorf("%.40q: %v", in, e)
			}
		}
		// Where nothing compares numbers, they are none of the schema's business.
		for _, open := range []string{`{}`, `true`, `{"items":{"type":"number"}}`} {
			if err := mustCompile(t, open).Validate([]byte(in)); err != nil {
				t.Errorf("%.40q against %s: %v", in, open, err)
			}
		}
	}
}

// H14: errors name places, in bounded number and in a fixed order, and never a value.
func TestReasons(t *testing.T) {
	s := mustCompile(t, `{"properties":{"a":{"type":"integer"},"b":{"enum":["x"]},"c":{"pattern":"^x$"},"d":{"format":"date"},"e":{"const":1}},"required":["f"],"propertyNames":{"maxLength":20}}`)
	const in = `{"a":"hunter2","b":"hunter2","c":"hunter2","d":"hunter2","e":"hunter2"}`
	want := `the document lacks property "f"; /a must be integer, not string; /b is not one of the allowed values; ` +
		`/c does not match pattern "^x$"; /d is not of format date; /e is not the required value`
	for range 20 {
		e := abi.AsError(s.Validate([]byte(in)))
		if e == nil || e.Message != want || e.Pointer != "" {
			t.Fatalf("%v", e)
		}
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `,"k%d":"hunter2"`, i)
	}
	e := abi.AsError(s.Validate([]byte(`{"f":1` + many.String() + `}`)))
	if e == nil || strings.Count(e.Message, ";") != schema.MaxReasons || !strings.Contains(e.Message, "and 93 more") || strings.Contains(e.Message, "hunter2") {
		t.Errorf("%v", e)
	}
	e = abi.AsError(s.Validate([]byte(`{"f":1,"` + strings.Repeat(`\u0001`, 2000) + `":1}`)))
	if e == nil || len(e.Pointer) > 256 || strings.ContainsRune(e.Message, 1) || len(e.Message) > 4096 {
		t.Errorf("a hostile key: %.300q", e)
	}
}

// S10: schemas whose evaluation explodes, and patterns at their bound over long strings, end.
func TestBombs(t *testing.T) {
	doubling := `{"$defs":{"l0":{"type":"string"}`
	for i := 1; i < 40; i++ {
		doubling += fmt.Sprintf(`,"l%d":{"allOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]}`, i, i-1, i-1)
	}
	doubling += `},"$ref":"#/$defs/l39"}`
	enum := make([]string, 6000)
	for i := range enum {
		enum[i] = fmt.Sprint(i)
	}
	for name, c := range map[string]struct{ schema, input string }{
		"in place":      {doubling, `"a"`},
		"fails":         {doubling, `1`},
		"hidden by not": {strings.Replace(doubling, `"$ref":"#/$defs/l39"}`, `"not":{"$ref":"#/$defs/l39"}}`, 1), `"a"`},
		"by depth": {
			`{"$defs":{"n":{"allOf":[{"properties":{"c":{"$ref":"#/$defs/n"}}},{"properties":{"c":{"$ref":"#/$defs/n"}}},{"properties":{"c":{"$ref":"#/$defs/n"}}}]}},"$ref":"#/$defs/n"}`,
			strings.Repeat(`{"c":`, 60) + `1` + strings.Repeat(`}`, 60),
		},
		"enum":    {`{"items":{"enum":[` + strings.Join(enum, ",") + `]}}`, `[` + strings.Repeat("5999,", 100_000) + `1]`},
		"no enum": {`{"items":{"enum":[` + strings.Join(enum, ",") + `]}}`, `[` + strings.Repeat("-1,", 100_000) + `1]`},
		"pattern": {`{"pattern":"^(x{0,40}y?){0,11}$"}`, `"` + strings.Repeat("x", 1<<20) + `"`},
		"unique":  {`{"anyOf":[` + strings.Repeat(`{"uniqueItems":true,"minItems":1000000},`, 500) + `false]}`, `[` + strings.Repeat(`[1,2,3,4],`, 50_000) + `1]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustCompile(t, c.schema)
			done := make(chan error, 1)
			go func() { done <- s.Validate([]byte(c.input)) }()
			select {
			case err := <-done:
				if abi.CodeOf(err) != abi.CodeInputSchema {
					t.Errorf("%v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("no end")
			}
			if err := s.Validate([]byte(`{}`)); abi.CodeOf(err) == abi.CodeInternal {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	loop := mustCompile(t, `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`)
	if err := loop.Validate([]byte(`1`)); abi.CodeOf(err) != abi.CodeInputSchema {
		t.Errorf("a reference loop: %v", err)
	}
}

// Large honest inputs are within the budget.
func TestLargeInput(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","pattern":"^[a-z]+$"}},"required":["id"]}},"blob":{"type":"string","pattern":"^[A-Za-z0-9+/]*={0,2}$"}}}`)
	in := `{"blob":"` + strings.Repeat("QUJD", 1<<18) + `","rows":[` + strings.Repeat(`{"id":1,"name":"abcdef"},`, 20_000) + `{"id":2}]}`
	if len(in) < 1<<20 {
		t.Fatalf("only %d bytes", len(in))
	}
	if err := s.Validate([]byte(in)); err != nil {
		t.Error(err)
	}
}

func TestConcurrent(t *testing.T) {
	s := mustCompile(t, `{"properties":{"a":{"type":"integer"}}}`)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				if err := s.Validate([]byte(`{"a":1}`)); err != nil {
					t.Error(err)
				}
				if err := s.Validate([]byte(`{"a":"x"}`)); abi.CodeOf(err) != abi.CodeInputSchema {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCache(t *testing.T) {
	c := schema.NewCache(2)
	compile := func(raw string) *schema.Schema {
		s, err := c.Compile([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := compile(`{"const":1}`), compile(`{"const":2}`)
	if compile(`{"const":1}`) != a || a == b {
		t.Error("the cache does not tell contents apart")
	}
	compile(`{"const":3}`) // drops 2, the least recently used
	if compile(`{"const":1}`) != a || compile(`{"const":2}`) == b {
		t.Error("the cache keeps the wrong schemas")
	}
	if _, err := c.Compile([]byte(`{"type":"x"}`)); abi.CodeOf(err) != abi.CodeSchemaInvalid {
		t.Errorf("through the cache: %v", err)
	}
}

// A descriptor's schemas are those of its content, found again without compiling or hashing, and however
// many descriptors there are.
func TestCacheOfDescriptors(t *testing.T) {
	c := schema.NewCache(2)
	d := func(in, out string) *abi.Descriptor {
		return &abi.Descriptor{InputSchema: []byte(in), OutputSchema: []byte(out)}
	}
	of := func(d *abi.Descriptor) schema.Pair {
		p, err := c.Of(d)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := d(`{"const":1}`, `{"const":2}`)
	for range 3 {
		p := of(first)
		if p.Input.Validate([]byte("1")) != nil || p.Input.Validate([]byte("2")) == nil || p.Output.Validate([]byte("2")) != nil {
			t.Error("the schemas are not the descriptor's")
		}
		if of(first) != p {
			t.Error("they were made twice")
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = c.Of(first) }); n != 0 {
			t.Errorf("%v allocations to find them", n)
		}
		for i := range 5 { // more than are kept
			n := strconv.Itoa(i + 10)
			if p := of(d(`{"const":`+n+`}`, `{}`)); p.Input.Validate([]byte(n)) != nil || p.Input.Validate([]byte("1")) == nil {
				t.Error("the schemas are another descriptor's")
			}
		}
	}
	for _, bad := range []*abi.Descriptor{d(`{"type":"x"}`, `{}`), d(`{}`, `{"type":"x"}`)} {
		for range 2 {
			if _, err := c.Of(bad); abi.CodeOf(err) != abi.CodeSchemaInvalid {
				t.Errorf("%s: %v", bad.InputSchema, err)
			}
		}
	}
}

// What refuses nothing is told from what refuses something, takes every document and nothing that is
// none, and costs no allocation.
func TestAdmitsAll(t *testing.T) {
	for raw, all := range map[string]bool{
		`{}`: true, `true`: true, `{"title":"t","description":"d","x-own":{"type":"null"},"$defs":{"a":false},"examples":[1],"default":2}`: true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:a","$comment":"c","contentMediaType":"text/plain"}`: true,
		`false`: false, `{"type":"object"}`: false, `{"not":{}}`: false, `{"allOf":[{}]}`: false, `{"properties":{}}`: false, `{"format":"date"}`: false,
		`{"$defs":{"a":false},"$ref":"#/$defs/a"}`: false, `{"const":1}`: false, `{"maxLength":9}`: false,
		`{"$defs":{"a":{"minimum":1}}}`: false, // and numbers are looked at wherever a schema has something to compare them with
	} {
		s := mustCompile(t, raw)
		for _, in := range []string{`1`, `"x"`, `{"a":[]}`, `[1e9999]`} { // the last is a number past comparing
			if err := s.Validate([]byte(in)); all && err != nil {
				t.Errorf("%s refuses %s: %v", raw, in, err)
			}
		}
		for _, in := range []string{``, `{`, `1 2`, `{"a":1,"a":1}`, "\"\xff\"", strings.Repeat("[", 65) + strings.Repeat("]", 65)} {
			if err := s.Validate([]byte(in)); abi.CodeOf(err) != abi.CodeInvalidJSON { // PF-A9
				t.Errorf("%s takes %q: %v", raw, in, err)
			}
		}
		in := []byte(`{"a":[1,"b",{"c":null}]}`)
		if n := testing.AllocsPerRun(100, func() { _ = s.Validate(in) }); (n == 0) != all {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

// S10: what judging is charged rises with the input and with the schema, is the same every time, and has
// an end.
func TestPrice(t *testing.T) {
	small := mustCompile(t, `{}`)
	large := mustCompile(t, `{"properties":{"a":{},"b":{},"c":{"items":{"pattern":"^a+$"}}}}`)
	if small.Price(0) <= 0 || small.Price(100_000) < 100*small.Price(0) || large.Price(0) <= small.Price(0) || large.Price(100_000) < 2*small.Price(100_000) {
		t.Errorf("%d %d, %d %d", small.Price(0), small.Price(100_000), large.Price(0), large.Price(100_000))
	}
	if most := large.Price(math.MaxInt32); most != large.Price(math.MaxInt32/2) || most > abi.LimitFuel.Info().Default/5 {
		t.Errorf("at most %d", most)
	}
}

// FuzzSchema: no schema and no input make the package panic or run without end.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{}}}`)
	f.Add(`{"$defs":{"x":{"$anchor":"y"}},"anyOf":[{"$ref":"#y"},{"pattern":"a{1,9}"}]}`, `"aaa"`)
	f.Add(`{"if":{"const":1},"then":{"multipleOf":0.1},"else":{"uniqueItems":true}}`, `[1,1.0]`)
	f.Add(`{"multipleOf":0}`, `1`)
	f.Add(`{"unevaluatedItems":{"contains":{"format":"date"}}}`, `["2026-01-01"]`)
	f.Fuzz(func(t *testing.T, raw, input string) {
		s, err := schema.Compile([]byte(raw))
		if err != nil {
			if abi.CodeOf(err) != abi.CodeSchemaInvalid {
				t.Fatalf("Compile: %v", err)
			}
			return
		}
		switch err := s.Validate([]byte(input)); abi.CodeOf(err) {
		case "", abi.CodeInputSchema, abi.CodeInvalidJSON:
		default:
			t.Fatalf("Validate: %v", err)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	s := mustCompile(b, `{"type":"object","properties":{"path":{"type":"string","maxLength":512},"offset":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}`)
	in := []byte(`{"path":"notes/today.md","offset":128,"tags":["a","b","c"]}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	raw := []byte(`{"type":"object","properties":{"path":{"type":"string","maxLength":512},"offset":{"type":"integer","minimum":0}},"required":["path"]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Compile(raw); err != nil {
			b.Fatal(err)
		}
	}
}

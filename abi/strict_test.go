package abi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	. "github.com/ecotone-dev/ecotone/abi"
)

type inner struct {
	Deep int `json:"deep"`
}

type document struct {
	Name   string            `json:"name"`
	Count  int               `json:"count"`
	On     bool              `json:"on"`
	List   []inner           `json:"list"`
	Map    map[string]string `json:"map"`
	Maybe  *inner            `json:"maybe"`
	Raw    json.RawMessage   `json:"raw"`
	Any    any               `json:"any"`
	Reach  Reach             `json:"reach"`
	Hidden string            `json:"-"`
	inner
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestDecodeStrictRefuses(t *testing.T) { // PF-A9
	for _, tc := range []struct {
		doc, pointer string
		code         Code
	}{
		{``, "", CodeInvalidJSON},
		{` `, "", CodeInvalidJSON},
		{`{`, "", CodeInvalidJSON},
		{`{"name":"a"`, "/name", CodeInvalidJSON},
		{`{"name":"a",}`, "/name", CodeInvalidJSON},
		{`{"name" "a"}`, "/name", CodeInvalidJSON},
		{`{name:"a"}`, "", CodeInvalidJSON},
		{`{'name':'a'}`, "", CodeInvalidJSON},
		{`{"name":"a"}{"name":"b"}`, "", CodeInvalidJSON},
		{`{"name":"a"} x`, "", CodeInvalidJSON},
		{`{"name":"a"}]`, "", CodeInvalidJSON},
		{`{"name":"a","name":"a"}`, "/name", CodeInvalidJSON},
		{`{"name":"a","n\u0061me":"b"}`, "/name", CodeInvalidJSON},
		{`{"map":{"k":"1","k":"2"}}`, "/map/k", CodeInvalidJSON},
		{`{"raw":{"k":1,"k":2}}`, "/raw/k", CodeInvalidJSON},
		{`{"any":[{"k":1,"k":2}]}`, "/any/0/k", CodeInvalidJSON},
		{`{"Name":"a"}`, "/Name", CodeUnknownField},
		{`{"NAME":"a"}`, "/NAME", CodeUnknownField},
		{`{"ſname":"a"}`, "/ſname", CodeUnknownField},
		{`{"hidden":"a"}`, "/hidden", CodeUnknownField},
		{`{"Hidden":"a"}`, "/Hidden", CodeUnknownField},
		{`{"-":"a"}`, "/-", CodeUnknownField},
		{`{"list":[{"deep":1},{"deeper":1}]}`, "/list/1/deeper", CodeUnknownField},
		{`{"maybe":{"Deep":1}}`, "/maybe/Deep", CodeUnknownField},
		{`{"a/b~c":1}`, "/a~1b~0c", CodeUnknownField},
		{`{"name":null}`, "/name", CodeInvalidJSON},
		{`{"count":null}`, "/count", CodeInvalidJSON},
		{`{"on":null}`, "/on", CodeInvalidJSON},
		{`{"list":null}`, "/list", CodeInvalidJSON},
		{`{"list":[null]}`, "/list/0", CodeInvalidJSON},
		{`{"map":{"k":null}}`, "/map/k", CodeInvalidJSON},
		{`{"reach":null}`, "/reach", CodeInvalidJSON},
		{`null`, "", CodeInvalidJSON},
		{`[]`, "", CodeInvalidJSON},
		{`"name"`, "", CodeInvalidJSON},
		{`{"name":1}`, "/name", CodeInvalidJSON},
		{`{"count":"1"}`, "/count", CodeInvalidJSON},
		{`{"count":1.5}`, "/count", CodeInvalidJSON},
		{`{"count":1e99}`, "/count", CodeInvalidJSON},
		{`{"reach":"global"}`, "/reach", CodeInvalidRequest},
		{`{"reach":2}`, "/reach", CodeInvalidJSON},
		{"{\"name\":\"\xff\"}", "", CodeInvalidJSON},
		{"\xef\xbb\xbf{}", "", CodeInvalidJSON},
		{`{"any":` + nested(StrictMaxDepth) + `}`, "", CodeInvalidJSON},
		{`{"raw":` + strings.Repeat("[", 1_000_000), "", CodeInvalidJSON},
	} {
		var v document
		err := DecodeStrict([]byte(tc.doc), &v)
		if err == nil {
			t.Errorf("%.60s was accepted", tc.doc)
			continue
		}
		e := AsError(err)
		if e.Code != tc.code {
			t.Errorf("%.60s: %v", tc.doc, err)
		}
		if tc.pointer != "" && e.Pointer != tc.pointer {
			t.Errorf("%.60s: points to %q, want %q", tc.doc, e.Pointer, tc.pointer)
		}
		if strings.Contains(e.Message, "Go ") || strings.Contains(e.Message, "abi_test") {
			t.Errorf("%.60s: the message speaks Go: %s", tc.doc, e.Message)
		}
		presentable(t, err)
	}
}

func TestDecodeStrictAccepts(t *testing.T) {
	var v document
	err := DecodeStrict([]byte(`  {"name":"a","count":-3,"on":true,"list":[{"deep":1},{}],"map":{"k":"v"},"maybe":null,
		"raw":{"k":[1,null]},"any":null,"reach":"owner","deep":9}  `), &v)
	if err != nil {
		t.Fatal(err)
	}
	want := document{
		Name: "a", Count: -3, On: true, List: []inner{{1}, {}}, Map: map[string]string{"k": "v"},
		Raw: json.RawMessage(`{"k":[1,null]}`), Reach: ReachOwner, inner: inner{9},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("decoded %+v", v)
	}
	if err := CheckJSON([]byte(nested(StrictMaxDepth)), StrictMaxDepth); err != nil {
		t.Errorf("the deepest allowed nesting: %v", err)
	}
	if err := CheckJSON([]byte(nested(StrictMaxDepth+1)), StrictMaxDepth); CodeOf(err) != CodeInvalidJSON {
		t.Errorf("one level more: %v", err)
	}
}

// A field of the struct itself hides one of an embedded struct, as it does in encoding/json.
func TestDecodeStrictShadowing(t *testing.T) {
	type base struct {
		Word Reach `json:"word"`
	}
	var v struct {
		base
		Word string `json:"word"`
	}
	if err := DecodeStrict([]byte(`{"word":"anything"}`), &v); err != nil || v.Word != "anything" {
		t.Errorf("%v, %+v", err, v)
	}
}

func FuzzStrict(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `1`, `{"name":"a"}`, `{"name":"a","name":"b"}`, `{"Name":"a"}`, `{"list":[{"deep":1}]}`, `{"a":1} 2`,
		`{"raw":{"k":1,"k":2}}`, `[1 2]`, `{"any":[[[]]]}`, "{\"name\":\"\\ud800\"}", `{"":{"":1}}`, nested(70), `{"reach":"owner"}`,
		"{\"\\u0007\\u202e\":1}", `{"count":1e2}`, `-`, `01`, `"\x"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checked := CheckJSON(data, StrictMaxDepth)
		if checked == nil && !json.Valid(data) {
			t.Errorf("CheckJSON accepts what is not JSON: %q", data)
		}
		// Both decoders agree on what one well-formed value is.
		var tree any
		if err := DecodeStrict(data, &tree); (err == nil) != (checked == nil) {
			t.Errorf("%q: CheckJSON says %v, DecodeStrict %v", data, checked, err)
		}
		var v document
		err := DecodeStrict(data, &v)
		if err != nil {
			presentable(t, err)
			return
		}
		if checked != nil {
			t.Errorf("%q: decoded, though %v", data, checked)
		}
		// Everything in the document is in the value: nothing was ignored.
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(data, &keys); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		for k := range keys {
			switch k {
			case "name", "count", "on", "list", "map", "maybe", "raw", "any", "reach", "deep":
			default:
				t.Errorf("%q: field %q was ignored", data, k)
			}
		}
	})
}

// A value of the wrong JSON type is refused at its own place, as the document spells it: no
// name of a Go type, and with the index of the element (PF-H4).
func TestDecodeStrictPlacesWrongTypes(t *testing.T) {
	type inner struct {
		Title string `json:"title"`
		Count uint8  `json:"count"`
	}
	type item struct {
		inner
		Flag *bool  `json:"flag"`
		Raw  []byte `json:"raw"`
	}
	for doc, want := range map[string]string{
		`{"items":[{},{"title":7}]}`:      "/items/1/title expected a string, found a number",
		`{"items":[{"title":{}}]}`:        "/items/0/title expected a string, found an object",
		`{"items":[{"count":1.5}]}`:       "/items/0/count expected a whole number in range, found another number",
		`{"items":[{"count":256}]}`:       "/items/0/count expected a whole number in range, found another number",
		`{"items":[{"count":-1}]}`:        "/items/0/count expected a whole number in range, found another number",
		`{"items":[{"flag":"true"}]}`:     "/items/0/flag expected a boolean, found a string",
		`{"items":[{"raw":[1]}]}`:         "/items/0/raw expected a string, found an array",
		`{"items":{}}`:                    "/items expected an array, found an object",
		`{"reach":3}`:                     "/reach expected a string, found a number",
		`{"reach":["owner"]}`:             "/reach expected a string, found an array",
		`[]`:                              " expected an object, found an array",
		`{"items":[{"flag":null}],"x":2}`: "/x expected a string, found a number",
	} {
		var v struct {
			Items []item `json:"items"`
			Reach Reach  `json:"reach"`
			X     string `json:"x"`
		}
		err := AsError(DecodeStrict([]byte(doc), &v))
		if err == nil || err.Code != CodeInvalidJSON || err.Pointer+" "+err.Message != want {
			t.Errorf("%s: %+v, want %s", doc, err, want)
		}
	}
}

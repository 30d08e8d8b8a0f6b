package schema

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ecotone-dev/ecotone/abi"
)

// What is decoded is what the library's own decoder makes of it, for every document that is let through.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, ` [ ] `, `null`, `"x"`, `-1.50e+07`, `{"a":[1,{"b":[]},true,false,null],"é":"\u00e9\ud83d\ude00\ud800\"\\"}`, "[ 1 ,\n2\t, {\"a\" : {} , \"b\":[ ] } ]\r\n",
		`{"\u0061":1}`, `["\\","\\\"",""]`, `[0,-0,10.0,1E5]`, `{"a":{"a":{"a":[[[]]]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if abi.CheckJSON(data, abi.StrictMaxDepth) != nil {
			return
		}
		want, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%q was let through: %v", data, err)
		}
		if diff := cmp.Diff(want, decode(data)); diff != "" {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}

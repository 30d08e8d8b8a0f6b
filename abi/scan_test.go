package abi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func scanned(data string, depth int) bool {
	return (&scan{data: []byte(data), depth: depth}).document()
}

func brackets(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// manyKeys is an object with n keys, and with the last one again when twice.
func manyKeys(n int, twice bool) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	if twice {
		fmt.Fprintf(&b, `"k%d":0,`, n-1)
	}
	return b.String() + `"end":null}`
}

// PF-A9: one pass tells what the walker tells. Where it says no it may be over-careful, which the
// walker then puts right; where it says yes the walker says yes.
func TestScan(t *testing.T) {
	for _, c := range []struct {
		doc      string
		ok, good bool // of the scan; of the walker
	}{
		{`{}`, true, true},
		{` [ ] `, true, true},
		{`"a"`, true, true},
		{`0`, true, true},
		{`-0.5e+7`, true, true},
		{"\t\r\nnull\n", true, true},
		{`{"a":1,"b":[{"a":2},{"a":3}],"c":{"a":4,"b":5}}`, true, true},
		{`["\u00e9\n\"\\\/\b\f\r\t é"]`, true, true},
		{`{"a":{},"b":[[]],"c":true,"d":false}`, true, true},
		{manyKeys(scanMany, false), true, true},
		{manyKeys(scanMany+1, false), true, true},
		{manyKeys(500, false), true, true},
		{manyKeys(scanMany, true), false, false},
		{manyKeys(scanMany+1, true), false, false},
		{manyKeys(500, true), false, false},
		{`{"a":1,"a":2}`, false, false},
		{`{"a":{"b":1,"b":1}}`, false, false},
		{`{"a":1,"\u0061":2}`, false, false},
		{`{"\u0061":2}`, false, true}, // a key with an escape is the walker's
		{`[` + manyKeys(15, false) + `,{"a":` + manyKeys(15, false) + `,"b":` + manyKeys(40, false) + `}]`, true, true},
		{brackets(3), true, true},
		{brackets(4), false, false}, // at a depth of 3
		{``, false, false},
		{` `, false, false},
		{`{`, false, false},
		{`[`, false, false},
		{`"`, false, false},
		{`"\`, false, false},
		{`"\u12`, false, false},
		{`"\u12g4"`, false, false},
		{`"\x"`, false, false},
		{"\"\x01\"", false, false},
		{`tru`, false, false},
		{`True`, false, false},
		{`nul`, false, false},
		{`01`, false, false},
		{`-`, false, false},
		{`+1`, false, false},
		{`1.`, false, false},
		{`.5`, false, false},
		{`1e`, false, false},
		{`1e+`, false, false},
		{`--1`, false, false},
		{`[1,]`, false, false},
		{`[,1]`, false, false},
		{`[1 2]`, false, false},
		{`{"a"}`, false, false},
		{`{"a":}`, false, false},
		{`{"a":1,}`, false, false},
		{`{1:2}`, false, false},
		{`{"a" 1}`, false, false},
		{`{"a":1 "b":2}`, false, false},
		{`1 2`, false, false},
		{`{}{}`, false, false},
		{`[]]`, false, false},
		{"\ufeff1", false, false},
		{"1\x00", false, false},
		{`[1}`, false, false},
		{`{"a":1]`, false, false},
	} {
		if got := scanned(c.doc, 3); got != c.ok {
			t.Errorf("%.60s: scanned as %v", c.doc, got)
		}
		if err := CheckJSON([]byte(c.doc), 3); (err == nil) != c.good {
			t.Errorf("%.60s: %v", c.doc, err)
		}
	}
}

// Every document that the standard library writes is taken in one pass, and so is an open object
// below one with as many keys as are kept.
func TestScanTakesWhatIsWritten(t *testing.T) {
	value := rapid.Deferred(func() *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64Range(-1e300, 1e300).AsAny(), rapid.Int64().AsAny(), rapid.String().AsAny())
		key := rapid.StringMatching(`[a-zé ]{0,5}[0-9]{0,2}`)
		low := rapid.OneOf(leaf, rapid.SliceOfN(leaf, 0, 5).AsAny(), rapid.MapOfN(key, leaf, 0, 40).AsAny())
		return rapid.OneOf(low, rapid.SliceOfN(low, 0, 5).AsAny(), rapid.MapOfN(key, low, 0, 20).AsAny())
	})
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(value.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		if !scanned(string(data), StrictMaxDepth) {
			t.Errorf("not taken: %s", data)
		}
	})
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x\u00e9"],"b":{"a":null}}`, manyKeys(20, true), brackets(70), `{"\u0061":1,"a":2}`, "[\"\x80\"]", `1 `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) || !scanned(string(data), StrictMaxDepth) {
			return
		}
		if err := (&walker{maxDepth: StrictMaxDepth}).walk(data); err != nil {
			t.Fatalf("%q is taken, and the walker says %v", data, err)
		}
		if !json.Valid(data) {
			t.Fatalf("%q is taken and not valid", data)
		}
	})
}

func BenchmarkCheckJSON(b *testing.B) {
	small := []byte(`{"name":"Ada","count":3,"tags":["a","b"]}`)
	for name, data := range map[string][]byte{"small": small, "large": []byte(`[` + strings.Repeat(string(small)+",", 20_000) + `null]`)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckJSON(data, StrictMaxDepth); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A good document of ordinary shape costs no allocation.
func TestCheckJSONAllocations(t *testing.T) {
	doc := []byte(`{"name":"Ada","count":3,"tags":["a","b\n"],"more":{"of":[{"it":1},{"it":2.5}]}}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := CheckJSON(doc, StrictMaxDepth); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

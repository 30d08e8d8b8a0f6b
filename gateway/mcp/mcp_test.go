package mcp

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
)

// refs are refs by chance, of every shape that there is.
var refs = rapid.Custom(func(t *rapid.T) abi.CapabilityRef {
	s := rapid.StringMatching(`[a-z][a-z0-9-]{0,9}:[a-z][a-z0-9-]{0,9}(\.[a-z][a-z0-9-]{0,9}){0,4}@(0|[1-9][0-9]{0,3})`).Draw(t, "ref")
	ref, err := abi.ParseCapabilityRef(s)
	if err != nil {
		t.Skip(err)
	}
	return ref
})

var usable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// A ref's name says the ref again, no two refs have one name, and no name that is not a ref's says one.
func TestToolNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := refs.Draw(t, "a"), refs.Draw(t, "b")
		x, ok := toolName(a)
		y, _ := toolName(b)
		if !ok || !usable.MatchString(x) || (x == y) != (a == b) {
			t.Fatalf("%s is %s, %s is %s", a, x, b, y)
		}
		if back, ok := refOf(x); !ok || back != a {
			t.Fatalf("%s says %s", x, back)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9_:.@-]{1,20}`).Draw(t, "name")
		if ref, ok := refOf(name); ok {
			if again, _ := toolName(ref); again != name {
				t.Fatalf("%s says %s, which is %s", name, ref, again)
			}
		}
	})
	for _, name := range []string{"", "__", "a__b__", "a__b__01", "a___b__1", "a__b_____1", "A__b__1", "a:b@1", "a__b__1 ", "a__b__1__2", "search"} {
		if ref, ok := refOf(name); ok {
			t.Errorf("%q says %s", name, ref)
		}
	}
	long := abi.CapabilityRef("a:" + strings.Repeat("b", abi.MaxRefBytes-4) + "@1")
	if name, ok := toolName(long); ok || len(name) <= maxName {
		t.Errorf("%d characters are a name", len(name))
	}
}

func FuzzRefOf(f *testing.F) {
	for _, name := range []string{"kb__page_read__1", "a__b__", "a____b__1"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if ref, ok := refOf(name); ok {
			if again, fits := toolName(ref); again != name || !fits {
				t.Errorf("%q says %s, which is %q", name, ref, again)
			}
		}
	})
}

// No text of an author's begins or ends a mark, or leaves its line.
func TestMarks(t *testing.T) {
	c := &invoke.Capability{Biome: "kb", Digest: strings.Repeat("ab", 32)}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got := marked(c, text)
		rest, ok := strings.CutPrefix(got, "[untrusted text from biome kb abababababab] ")
		if !ok || strings.ContainsAny(rest, "[]\n\r\t\u2028\u2029\u202e\u200b\x00\x1b") {
			t.Fatalf("%q is marked as %q", text, got)
		}
	})
}

// What a schema would have a client repeat in headers is gone, wherever it is a keyword, and stays where it is a name.
func TestShownSchemas(t *testing.T) {
	in := `{"type":"object","x-mcp-header":"A","properties":{"x-mcp-header":{"type":"string","x-mcp-header":"B"},"n":{"items":[{"x-mcp-header":"C"}],"properties":{"m":{"\u0078-mcp-header":"D"}}}},"allOf":[{"x-mcp-header":"E"}],"$defs":{"x-mcp-header":{"x-mcp-header":"F"}}}`
	want := `{"$defs":{"x-mcp-header":{}},"allOf":[{}],"properties":{"n":{"items":[{}],"properties":{"m":{}}},"x-mcp-header":{"type":"string"}},"type":"object"}`
	if got := shown(json.RawMessage(in)); string(got) != want {
		t.Errorf("shown as %s", got)
	}
	for in, want := range map[string]string{
		`{}`: `{"type":"object"}`, `true`: `{"type":"object"}`, `{"type":"object","properties":{}}`: `{"type":"object","properties":{}}`,
		`{"type":["string","object"]}`: `{"type":"object"}`, `{"type":"string"}`: "", `{"type":["string"]}`: "", `false`: "",
	} {
		if got, ok := objectSchema(json.RawMessage(in)); ok != (want != "") || ok && string(got) != want {
			t.Errorf("%s is %s, %v", in, got, ok)
		}
	}
}

// The annotations say all there is to say, and no more than author and gateway do.
func TestAnnotations(t *testing.T) {
	for _, c := range []struct {
		effects                     string
		risk                        abi.RiskTier
		reach                       abi.Reach
		readOnly, destructive, open bool
	}{
		{"none", abi.RiskLow, abi.ReachOwner, true, false, false},
		{"None ", abi.RiskMedium, abi.ReachIntegration, true, false, true},
		{"none", abi.RiskHigh, abi.ReachPlatform, false, true, true},
		{"writes", abi.RiskLow, abi.ReachOwner, false, false, false},
		{"writes", abi.RiskMedium, abi.ReachOwner, false, true, false},
	} {
		d := &abi.Descriptor{SideEffects: c.effects, RiskTier: c.risk, Reach: c.reach}
		a := annotations(&invoke.Capability{Descriptor: d})
		if a.ReadOnlyHint != c.readOnly || *a.DestructiveHint != c.destructive || *a.OpenWorldHint != c.open || a.IdempotentHint {
			t.Errorf("%+v is %+v, %v, %v", c, a, *a.DestructiveHint, *a.OpenWorldHint)
		}
	}
}

// What waits is found by the same call until its answer is given, and the oldest is forgotten past the bound.
func TestWaiting(t *testing.T) {
	w := newWaiting()
	w.add("call", "1")
	w.add("call", "2") // another request took its place
	w.remove("call", "1")
	if id, ok := w.find("call"); !ok || id != "2" {
		t.Errorf("found %q", id)
	}
	for i := range maxWaiting {
		w.add("call "+strconv.Itoa(i), "x")
	}
	if _, ok := w.find("call"); ok || w.order.Len() != maxWaiting || len(w.of) != maxWaiting {
		t.Errorf("%d are remembered", w.order.Len())
	}
}

// A body is one message, or it is refused before anything reads it.
func FuzzMessage(f *testing.F) {
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}`, `[]`, `{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, fault := readMessage(body, versionSessions)
		if (m == nil) == (fault == nil) {
			t.Fatal("neither a message nor a fault")
		}
		if m != nil && (m.JSONRPC != "2.0" || m.Method == "" || !json.Valid(body)) {
			t.Errorf("%q is a message", body)
		}
	})
}

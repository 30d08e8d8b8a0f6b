package abi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/ecotone-dev/ecotone/abi"
)

const goodManifest = `{
	"name": "kb", "version": "1.2.3-rc.1+build", "abi": "ecotone_v1",
	"provides": [{
		"ref": "kb:page.read@1", "export": "read", "title": "Read a page", "summary": "Reads one page.", "sideEffects": "none",
		"inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
		"riskTier": "low", "outputClassification": "internal", "reach": "integration", "examples": [{"page": 1}, null]
	}, {
		"ref": "kb:page.list@1", "export": "list", "title": "List pages", "summary": "Lists them.", "sideEffects": "",
		"inputSchema": {}, "outputSchema": {}, "riskTier": "high", "requiresApproval": true, "outputClassification": "public", "reach": "owner"
	}],
	"requires": {
		"capabilities": ["notes:note.get@1"],
		"endpoints": [{"name": "origin", "why": "pages live there"}],
		"secrets": [{"name": "token", "why": "to sign in"}]
	},
	"examples": [{"ref": "kb:page.read@1", "input": {"page": 1}}]
}`

// edit returns the good manifest with one change, given as old and new text.
func edit(t *testing.T, old, new string) string {
	t.Helper()
	if strings.Count(goodManifest, old) == 0 {
		t.Fatalf("the manifest has no %q", old)
	}
	return strings.Replace(goodManifest, old, new, 1)
}

func TestManifest(t *testing.T) {
	m, problems := DecodeManifest([]byte(goodManifest))
	if problems != nil {
		t.Fatal(problems)
	}
	if m.Name != "kb" || m.Freeze != FreezeAuto || len(m.Provides) != 2 || m.MaxReach() != ReachIntegration {
		t.Errorf("decoded %+v", m)
	}
	d := m.Provides[0]
	if d.Ref != "kb:page.read@1" || d.Reach != ReachIntegration || d.OutputClassification != Internal || string(d.Examples[1]) != "null" {
		t.Errorf("decoded %+v", d)
	}
	if len(m.Requires.Capabilities) != 1 || m.Requires.Endpoints[0].Name != "origin" || m.Requires.Secrets[0].Why != "to sign in" || m.Examples[0].Ref != d.Ref {
		t.Errorf("decoded %+v", m)
	}
	// What is stored reads back as the same.
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	back, problems := DecodeManifest(b)
	if problems != nil || !reflect.DeepEqual(compact(t, back), compact(t, m)) {
		t.Errorf("%v: %s", problems, b)
	}
}

func compact(t *testing.T, m *Manifest) string {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A biome may not introduce an environment, a grant or a publisher (X4); every such field is
// listed, not the first alone.
func TestManifestNamesNoEnvironment(t *testing.T) { // X4
	doc := edit(t, `"name": "kb",`, `"name": "kb", "environments": [{"slug": "mine", "reach": "platform"}], "grants": [], "publisher": "me",`)
	doc = strings.Replace(doc, `"export": "list",`, `"export": "list", "environment": "environment:org",`, 1)
	m, problems := DecodeManifest([]byte(doc))
	if m != nil || len(problems) != 4 {
		t.Fatalf("%d problems: %v", len(problems), problems)
	}
	want := []string{"/environments", "/grants", "/publisher", "/provides/1/environment"}
	for i, e := range problems {
		if e.Code != CodeUnknownField || e.Pointer != want[i] {
			t.Errorf("problem %d: %v, want %s at %s", i, e, CodeUnknownField, want[i])
		}
	}
}

func TestManifestListsEverything(t *testing.T) {
	doc := `{"name": "Bad Name", "version": "one", "abi": "ecotone_v2", "surprise": 1,
		"provides": [{"ref": "nope", "export": "_start", "title": "", "summary": "a\u0000b", "riskTier": "none",
			"inputSchema": [], "reach": "global", "outputClassification": "top"}],
		"requires": {"capabilities": ["x"], "endpoints": [{"name": "A", "why": ""}]},
		"examples": [{"ref": "kb:other@1"}], "freeze": "sometimes"}`
	_, problems := DecodeManifest([]byte(doc))
	got := map[string]bool{}
	for _, e := range problems {
		got[e.Pointer] = true
		presentable(t, e)
	}
	for _, pointer := range []string{
		"/name", "/version", "/abi", "/surprise", "/provides/0/ref", "/provides/0/export", "/provides/0/title", "/provides/0/summary",
		"/provides/0/riskTier", "/provides/0/inputSchema", "/provides/0/outputSchema", "/provides/0/reach", "/provides/0/outputClassification",
		"/requires/capabilities/0", "/requires/endpoints/0/name", "/requires/endpoints/0/why", "/examples/0/ref", "/examples/0/input", "/freeze",
	} {
		if !got[pointer] {
			t.Errorf("nothing is said about %s", pointer)
		}
	}
	if !strings.Contains(problems.Error(), "surprise") || !strings.Contains(problems.Error(), "; ") {
		t.Error("the text of the problems is not all of them")
	}
}

func TestManifestRefuses(t *testing.T) {
	long := strings.Repeat("x", 1100)
	for _, tc := range []struct{ old, new, pointer string }{
		{`"name": "kb"`, `"name": "system"`, "/name"}, // PF-A9
		{`"name": "kb"`, `"name": "ecotone"`, "/name"},
		{`"name": "kb"`, `"name": "kb", "name": "other"`, "/name"}, // PF-A9
		{`"name": "kb"`, `"Name": "kb"`, "/Name"},
		{`"1.2.3-rc.1+build"`, `"1.2"`, "/version"},
		{`"1.2.3-rc.1+build"`, `"1.2.3\n"`, "/version"},
		{`"1.2.3-rc.1+build"`, `null`, "/version"},
		{`"abi": "ecotone_v1",`, ``, "/abi"},
		{`"reach": "integration"`, `"reach": "global"`, "/provides/0/reach"}, // X8
		{`"reach": "integration"`, `"reach": ""`, "/provides/0/reach"},
		{`, "reach": "owner"`, ``, "/provides/1/reach"},                                                                  // X8
		{`"outputClassification": "public"`, `"outputClassification": "regulatory"`, "/provides/1/outputClassification"}, // X16
		{`"kb:page.list@1"`, `"kb:page.read@1"`, "/provides/1/ref"},
		{`"kb:page.list@1"`, `"kb:page.list"`, "/provides/1/ref"}, // X57
		{`"export": "list"`, `"export": "read"`, "/provides/1/export"},
		{`"export": "list"`, `"export": "memory"`, "/provides/1/export"},
		{`"export": "list"`, `"export": "_initialize"`, "/provides/1/export"},
		{`"export": "list"`, `"export": "ecotone_fuel"`, "/provides/1/export"}, // S2
		{`"export": "list"`, `"export": "a\u202eb"`, "/provides/1/export"},
		{`"List pages"`, `"` + long + `"`, "/provides/1/title"},
		{`"List pages"`, `" "`, "/provides/1/title"},
		{`"Lists them."`, `"\u202egnp"`, "/provides/1/summary"}, // S17
		{`"sideEffects": ""`, `"sideEffects": "` + long + `"`, "/provides/1/sideEffects"},
		{`"riskTier": "low"`, `"riskTier": "Low"`, "/provides/0/riskTier"},
		{`"inputSchema": {}`, `"inputSchema": true`, "/provides/1/inputSchema"},
		{`"inputSchema": {}`, `"inputSchema": {"a":1,"a":2}`, "/provides/1/inputSchema/a"}, // PF-A9
		{`"inputSchema": {}`, `"inputSchema": {"d": "` + strings.Repeat("x", MaxSchemaBytes) + `"}`, "/provides/1/inputSchema"},
		{`["notes:note.get@1"]`, `["notes:note.get@1","notes:note.get@1"]`, "/requires/capabilities/1"},
		{`[{"name": "token", "why": "to sign in"}]`, `[{"name": "token", "why": "a"}, {"name": "token", "why": "b"}]`, "/requires/secrets/1/name"},
		{`{"name": "token", "why": "to sign in"}`, `{"name": "token"}`, "/requires/secrets/0/why"},
		{`"input": {"page": 1}`, `"output": {"page": 1}`, "/examples/0/output"},
		{`"requires": {`, `"freeze": "always", "requires": {`, "/freeze"},
		{`"requires": {`, `"requires": null, "x": {`, "/requires"},
	} {
		m, problems := DecodeManifest([]byte(edit(t, tc.old, tc.new)))
		if m != nil || len(problems) == 0 {
			t.Errorf("%.60s was accepted", tc.new)
			continue
		}
		found := false
		for _, e := range problems {
			found = found || e.Pointer == tc.pointer
			if e.Code != CodeManifestInvalid && e.Code != CodeUnknownField {
				t.Errorf("%.60s: code %s", tc.new, e.Code)
			}
		}
		if !found {
			t.Errorf("%.60s: nothing is said about %s: %v", tc.new, tc.pointer, problems)
		}
	}
}

func TestManifestBounds(t *testing.T) {
	many := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(item, i)
		}
		return strings.Join(items, ",")
	}
	for name, doc := range map[string]string{
		"bytes":    strings.Repeat(" ", MaxManifestBytes) + goodManifest,
		"empty":    ``,
		"not json": "\x00asm",
		"array":    `[` + goodManifest + `]`,
		"twice":    goodManifest + goodManifest,
		"depth":    edit(t, `"inputSchema": {"type": "object"}`, `"inputSchema": `+strings.Repeat(`{"a":`, 70)+`1`+strings.Repeat(`}`, 70)),
		"requires": edit(t, `["notes:note.get@1"]`, `[`+many(MaxRequires+1, `"a:b%d@1"`)+`]`),
		"examples": edit(t, `[{"page": 1}, null]`, `[`+many(MaxExamples+1, `%d`)+`]`),
		"none":     `{"name":"kb","version":"1.0.0","abi":"ecotone_v1","provides":[]}`,
	} {
		if m, problems := DecodeManifest([]byte(doc)); m != nil || len(problems) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	// A document made of problems gives a bounded report.
	_, problems := DecodeManifest([]byte(edit(t, `"name": "kb",`, `"name": "kb",`+many(5000, `"u%d":1`)+`,`)))
	if len(problems) != MaxManifestProblems {
		t.Errorf("%d problems are listed", len(problems))
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(goodManifest))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"provides":[{"ref":"a:b@1"},{}],"requires":{"secrets":[{}]},"examples":[{}]}`))
	f.Add([]byte(`{"environments":[],"provides":[{"reach":"global"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems := DecodeManifest(data)
		if (m == nil) == (len(problems) == 0) {
			t.Fatalf("%q: neither accepted nor refused", data)
		}
		for _, e := range problems {
			presentable(t, e)
		}
		if m == nil {
			return
		}
		if err := CheckJSON(data, StrictMaxDepth); err != nil {
			t.Errorf("%q: accepted, though %v", data, err)
		}
		if !m.MaxReach().Valid() || m.ABI == "" {
			t.Errorf("%q: accepted as %+v", data, m)
		}
		// HTML escaping makes text longer, so a stored copy may be over a bound the original kept.
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > MaxManifestBytes {
			return
		}
		back, problems := DecodeManifest(b)
		if problems == nil && compact(t, back) != string(b) {
			t.Errorf("%q comes back as %q", b, compact(t, back))
		}
	})
}

const commandManifest = `{
	"name": "tool", "version": "1.0.0", "abi": "wasi_snapshot_preview1",
	"provides": [{
		"ref": "tool:text.upper@1", "export": "_start", "arguments": ["upper", "-n"], "inputEncoding": "text", "outputEncoding": "base64",
		"title": "Upper", "summary": "Upper.", "sideEffects": "", "inputSchema": {}, "outputSchema": {},
		"riskTier": "low", "outputClassification": "public", "reach": "owner"
	}, {
		"ref": "tool:text.lower@1", "export": "_start",
		"title": "Lower", "summary": "Lower.", "sideEffects": "", "inputSchema": {}, "outputSchema": {},
		"riskTier": "low", "outputClassification": "public", "reach": "owner"
	}]
}`

// A face decides what its capabilities may say: one program serves many by its arguments, and only
// who reads bytes says how they are encoded.
func TestManifestFaces(t *testing.T) {
	m, problems := DecodeManifest([]byte(commandManifest))
	if problems != nil {
		t.Fatal(problems)
	}
	if d := m.Provides[0]; m.ABI != FaceWASI || fmt.Sprint(d.Arguments) != "[upper -n]" || d.InputEncoding != EncodingText || d.OutputEncoding != EncodingBase64 {
		t.Errorf("decoded %+v", m)
	}
	many := `"` + strings.Repeat(`a","`, MaxArguments) + `a"`
	for _, tc := range []struct{ old, new, pointer string }{
		{`"wasi_snapshot_preview1"`, `"wasi_unstable"`, "/abi"},
		{`"wasi_snapshot_preview1"`, `"ecotone_v1"`, "/provides/0/export"},
		{`"wasi_snapshot_preview1"`, `"ecotone_v1"`, "/provides/0/arguments"},
		{`"wasi_snapshot_preview1"`, `"ecotone_v1"`, "/provides/0/inputEncoding"},
		{`"wasi_snapshot_preview1"`, `"ecotone_v1"`, "/provides/0/outputEncoding"},
		{`"arguments": ["upper", "-n"], `, ``, "/provides/1/export"}, // nothing tells them apart
		{`"export": "_start", "arguments"`, `"export": "run", "arguments"`, "/provides/0/arguments"},
		{`"upper", "-n"`, many, "/provides/0/arguments"},
		{`"upper"`, `"a\u0000b"`, "/provides/0/arguments"},
		{`"upper"`, `"a\u202eb"`, "/provides/0/arguments"},
		{`"upper"`, `"` + strings.Repeat("x", MaxArgumentBytes+1) + `"`, "/provides/0/arguments"},
		{`"upper"`, `1`, "/provides/0/arguments/0"},
		{`"inputEncoding": "text"`, `"inputEncoding": "utf-8"`, "/provides/0/inputEncoding"},
		{`"outputEncoding": "base64"`, `"outputEncoding": "Base64"`, "/provides/0/outputEncoding"},
	} {
		if !strings.Contains(commandManifest, tc.old) {
			t.Fatalf("the manifest has no %q", tc.old)
		}
		m, problems := DecodeManifest([]byte(strings.Replace(commandManifest, tc.old, tc.new, 1)))
		found := false
		for _, e := range problems {
			found = found || e.Pointer == tc.pointer
			presentable(t, e)
		}
		if m != nil || !found {
			t.Errorf("%.60s: nothing is said about %s: %v", tc.new, tc.pointer, problems)
		}
	}
}

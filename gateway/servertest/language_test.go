package servertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

type object = map[string]any

// languageBiomes are the example biomes that are not in Go: what each does with a session in which it
// may use keys and files.
var languageBiomes = []struct {
	name, language string
	test           func(t *testing.T, s *servertest.Session)
}{
	{"textstats", "C", func(t *testing.T, s *servertest.Session) {
		gives(t, s, "text:stats.count@1", object{"text": "Crème \"brûlée\",\ntwice 🍮\n"},
			object{"bytes": 30.0, "characters": 24.0, "words": 4.0, "lines": 2.0, "longestWord": 9.0})
		gives(t, s, "text:stats.count@1", []byte(`{ "text" : "\ud83c\udf6e\u00e9\\\"\/\b" }`), object{"bytes": 10.0, "characters": 6.0, "words": 1.0, "lines": 1.0, "longestWord": 6.0})
		gives(t, s, "text:stats.count@1", object{"text": ""}, object{"bytes": 0.0, "characters": 0.0, "words": 0.0, "lines": 0.0, "longestWord": 0.0})
		gives(t, s, "text:slug.make@1", object{"text": " Crème brûlée, TWICE! "}, object{"slug": "creme-brulee-twice"})
		gives(t, s, "text:slug.make@1", object{"text": "ab cd ef", "most": 6}, object{"slug": "ab-cd"})
		says(t, s, "text:slug.make@1", object{"text": "…"}, "NOTHING_LEFT")
		s.Invoke("text:slug.make@1", object{"txet": "misspelt"}).Refused(abi.CodeInputSchema)
	}},
	{"tally", "Rust", func(t *testing.T, s *servertest.Session) {
		gives(t, s, "tally:counter.read@1", object{"name": "milk"}, object{"name": "milk", "total": 0.0})
		gives(t, s, "tally:counter.add@1", object{"name": "milk", "by": 2}, object{"name": "milk", "total": 2.0})
		gives(t, s, "tally:counter.add@1", object{"name": "milk"}, object{"name": "milk", "total": 3.0})
		gives(t, s, "tally:counter.add@1", object{"name": "\"é\\", "by": -7}, object{"name": "\"é\\", "total": -7.0})
		gives(t, s, "tally:counter.read@1", []byte(` { "name" : "\u006d\u0069lk" } `), object{"name": "milk", "total": 3.0})
		gives(t, s, "tally:counter.read@1", []byte(`{"name":"\ud83c\udf6e\/"}`), object{"name": "🍮/", "total": 0.0})
		gives(t, s, "tally:counter.top@1", object{}, object{"counters": []any{object{"name": "milk", "total": 3.0}, object{"name": "\"é\\", "total": -7.0}}})
		gives(t, s, "tally:counter.top@1", object{"limit": 1}, object{"counters": []any{object{"name": "milk", "total": 3.0}}})
	}},
	{"table", "AssemblyScript", func(t *testing.T, s *servertest.Session) {
		csv := "name,price,note\r\nmilk,1.5,\"two\"\" lines\n\"\r\n\nb\u00e9,x,\r\n"
		rows := []any{object{"name": "milk", "price": 1.5, "note": "two\" lines\n"}, object{"name": "bé", "price": "x", "note": ""}}
		want := object{"columns": []any{"name", "price", "note"}, "rows": rows}
		gives(t, s, "table:csv.parse@1", object{"csv": csv, "numbers": true}, want)
		gives(t, s, "table:csv.render@1", object{"columns": want["columns"], "rows": rows},
			object{"csv": "name,price,note\r\nmilk,1.5,\"two\"\" lines\n\"\r\nbé,x,\r\n"})
		gives(t, s, "table:csv.parse@1", []byte(`{"csv":"\ud83c\udf6e\u0041\n\"\/\\\""}`), object{"columns": []any{"🍮A"}, "rows": []any{object{"🍮A": `/\`}}})
		says(t, s, "table:csv.parse@1", object{"csv": "a,b\n1\n"}, "CSV_INVALID")
		says(t, s, "table:csv.parse@1", object{"csv": "a\n\"1\n"}, "CSV_INVALID")
		says(t, s, "table:csv.parse@1", object{"path": "none.csv"}, "FILE_NOT_FOUND")
		if err := os.WriteFile(filepath.Join(s.G.Dir, "workspaces", s.Workspace, "a.csv"), []byte("k;v\n1;2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		// A file that came from outside carries the label of imports, which this session may see.
		gives(t, s, "table:csv.parse@1", object{"path": "a.csv", "delimiter": ";"}, object{"columns": []any{"k", "v"}, "rows": []any{object{"k": "1", "v": "2"}}})
	}},
}

// gives invokes a capability whose output must be this.
func gives(t *testing.T, s *servertest.Session, ref string, input any, want object) {
	t.Helper()
	var got object
	s.Invoke(ref, input).Want(200).JSON(&got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s: %s", ref, input, diff)
	}
}

// says invokes a capability that must fail with a code of its own.
func says(t *testing.T, s *servertest.Session, ref string, input object, code string) {
	t.Helper()
	var problem struct{ Guest struct{ Code string } }
	if s.Invoke(ref, input).Refused(abi.CodeGuestError).JSON(&problem); problem.Guest.Code != code {
		t.Errorf("%s %v: it says %q, not %q", ref, input, problem.Guest.Code, code)
	}
}

// X58: a biome in each language is uploaded as it is committed, runs from an image like any other, and
// does its work.
func TestBiomesInEachLanguage(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	for _, b := range languageBiomes {
		module, err := os.ReadFile(filepath.Join("..", "..", "biomes", b.name, b.name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		admit(g, b.name, module, []string{"project"}, nil)
		s := g.Open("user:alice", "project", map[string]any{"files": true})
		t.Run(b.language, func(t *testing.T) { b.test(t, s) })
	}
}

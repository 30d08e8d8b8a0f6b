package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// exported is a log of two organisations in several files, and the export of one.
func exported(t testing.TB) (dir string, lines []string, head []byte) {
	t.Helper()
	dir = t.TempDir()
	l, err := Open(Options{Dir: dir, SegmentBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		org := []string{"acme", "next-door"}[i%2]
		id := NewID()
		mustAppend(t, l, org, id, decision(VerdictAllow))
		mustAppend(t, l, org, id, completed())
	}
	mustAppend(t, l, "acme", "", Refused{Code: "FORBIDDEN", Listener: "admin", Method: "GET", Route: "/<b>&", Detail: "a <tag> & more"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, export(t, dir, "acme"), l.Head()
}

func export(t testing.TB, dir, org string) []string {
	t.Helper()
	var out bytes.Buffer
	n, err := Export(dir, org, &out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if int64(len(lines)) != n+1 {
		t.Fatalf("%d lines of %d entries", len(lines), n)
	}
	return lines
}

func verifyLines(t testing.TB, lines []string, o VerifyOptions) ExportReport {
	t.Helper()
	r, err := VerifyExport(strings.NewReader(strings.Join(lines, "\n")+"\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An export verifies with nothing beside it, and with the key and the head that were kept elsewhere; its clear text
// is what was recorded.
func TestExportVerifies(t *testing.T) {
	dir, lines, head := exported(t)
	key, err := os.ReadFile(filepath.Join(Dir(dir), pubName))
	if err != nil {
		t.Fatal(err)
	}
	r := verifyLines(t, lines, VerifyOptions{Key: string(key), Head: head})
	if !r.OK || r.Entries != 25 || r.Opened != 25 || r.Org != "acme" || r.Size < 49 {
		t.Fatalf("%+v", r)
	}
	var h ExportHead
	if err := json.Unmarshal([]byte(lines[0]), &h); err != nil || len(h.Keys) < 2 {
		t.Fatalf("%d keys, %v: the log is in one file", len(h.Keys), err)
	}
	var first ExportEntry
	if err := json.Unmarshal([]byte(lines[1]), &first); err != nil {
		t.Fatal(err)
	}
	if body, err := decodeBody(KindDecided, first.Body); err != nil || body.(Decided).Capability != "kb:page.read@1" {
		t.Errorf("%s: %v", first.Body, err)
	}
	all := strings.Join(lines, "")
	if !strings.Contains(all, `a \u003ctag\u003e \u0026 more`) {
		t.Error("the refusal is not there as it was")
	}
}

// What is changed in an export, left out of it, put in or taken from another is found.
func TestExportFindsChanges(t *testing.T) {
	dir, lines, head := exported(t)
	other := export(t, dir, "next-door")
	_, strangers, strangeHead := exported(t)
	changed := func(line int, change func(m map[string]any)) []string {
		out := append([]string{}, lines...)
		var m map[string]any
		if err := json.Unmarshal([]byte(out[line]), &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out[line] = string(raw)
		return out
	}
	set := func(name string, v any) func(map[string]any) { return func(m map[string]any) { m[name] = v } }
	swapped := append([]string{}, lines...)
	swapped[1], swapped[2] = swapped[2], swapped[1]
	for name, x := range map[string][]string{
		"nothing":               {""},
		"no head":               lines[1:],
		"cut":                   lines[:len(lines)-1],
		"one left out":          append(append([]string{}, lines[:3]...), lines[4:]...),
		"one twice":             append(append([]string{}, lines[:3]...), lines[2:]...),
		"swapped":               swapped,
		"one more":              append(append([]string{}, lines...), lines[len(lines)-1]),
		"a body":                changed(1, func(m map[string]any) { m["body"].(map[string]any)["verdict"] = "deny" }),
		"no body":               changed(1, func(m map[string]any) { delete(m, "body") }),
		"a time":                changed(1, set("time", "2020-01-01T00:00:00Z")),
		"a row":                 changed(1, set("auditId", "01ARZ3NDEKTSV4RRFFQ69G5FAV")),
		"a kind":                changed(1, set("kind", "ended")),
		"an index":              changed(1, set("index", 5)),
		"a proof":               changed(1, func(m map[string]any) { m["proof"].([]any)[0] = tlog.Hash{}.String() }),
		"no proof":              changed(1, set("proof", []any{})),
		"an unknown member":     changed(1, set("note", "trust me")),
		"the organisation":      changed(0, set("org", "next-door")),
		"the number":            changed(0, set("entries", 1)),
		"the keys":              changed(0, set("keys", []any{})),
		"the public key":        changed(0, set("key", "nobody")),
		"the format":            changed(0, set("format", "ecotone-audit-export-2")),
		"the head":              changed(0, func(m map[string]any) { m["head"] = strings.Replace(m["head"].(string), "\n", "\n1", 1) }),
		"another's entry":       append(append([]string{}, lines[:1]...), other[1:]...),
		"an entry of elsewhere": append(append([]string{}, lines[:1]...), strangers[1:]...),
	} {
		if r := verifyLines(t, x, VerifyOptions{}); r.OK || r.Problem == "" {
			t.Errorf("%s verifies: %+v", name, r)
		}
	}
	for name, o := range map[string]VerifyOptions{"another key": {Key: "ecotone.audit/0+0+0"}, "another head": {Head: strangeHead}, "no head": {Head: head[:10]}} {
		if r := verifyLines(t, lines, o); r.OK {
			t.Errorf("against %s it verifies", name)
		}
	}
	// Each byte of a payload counts.
	var e ExportEntry
	if err := json.Unmarshal([]byte(lines[2]), &e); err != nil {
		t.Fatal(err)
	}
	for i := range e.Payload {
		e.Payload[i] ^= 1
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		e.Payload[i] ^= 1
		if r := verifyLines(t, append(append(append([]string{}, lines[:2]...), string(raw)), lines[3:]...), VerifyOptions{}); r.OK || r.Line != 3 {
			t.Fatalf("byte %d: %+v", i, r)
		}
	}
}

// Of an organisation that was erased there are the leaves and no body; of one that never was there is nothing. A log that was
// touched is not exported.
func TestExportOfWhatIsGone(t *testing.T) {
	dir, _, _ := exported(t)
	l := mustOpen(t, Options{Dir: dir, SegmentBytes: 4096})
	if err := l.Erase(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	lines := export(t, dir, "acme") // while the log is open
	if r := verifyLines(t, lines, VerifyOptions{}); !r.OK || r.Opened != 0 || r.Entries < 25 || strings.Contains(strings.Join(lines, ""), `"body"`) {
		t.Errorf("%+v", r)
	}
	if r := verifyLines(t, export(t, dir, "nobody"), VerifyOptions{}); !r.OK || r.Entries != 0 {
		t.Errorf("%+v", r)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(Dir(copied), "*"+entriesExt))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(files[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(copied, "next-door", &bytes.Buffer{}); err == nil {
		t.Error("a log that was touched is exported")
	}
	if _, err := Export(t.TempDir(), "acme", &bytes.Buffer{}); err == nil {
		t.Error("a directory without a log is exported")
	}
}

// Whatever an export says, verifying it does no harm, and what verifies has its entries.
func FuzzVerifyExport(f *testing.F) {
	_, lines, _ := exported(f)
	f.Add([]byte(strings.Join(lines, "\n")))
	f.Add([]byte(lines[0]))
	f.Add([]byte(fmt.Sprintf("%s\n%s", lines[0], lines[1])))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := VerifyExport(bytes.NewReader(raw), VerifyOptions{})
		if err == nil && r.OK != (r.Problem == "") {
			t.Errorf("%+v", r)
		}
	})
}

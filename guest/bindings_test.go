package guest_test

import (
	"embed"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/guest/assemblyscript"
	"github.com/ecotone-dev/ecotone/guest/c"
	"github.com/ecotone-dev/ecotone/guest/rust"
)

// binding is how one language writes down what the tables of the ABI say.
type binding struct {
	name     string
	files    embed.FS
	declares *regexp.Regexp // a host function: import name, name in the language, parameters
	prefix   string         // of the name in the language
	sixty    *regexp.Regexp // a parameter of 64 bits; all others have 32
	errno    *regexp.Regexp // an error number: name, number
	uses     string         // how the part for people calls a host function, before its name; "" when they call it themselves
}

var bindings = []binding{
	{
		name: "C", files: c.Files, prefix: "eco_",
		declares: regexp.MustCompile(`(?m)^ECO_HOST\((\w+)\) int64_t (\w+)\(([^)]*)\);$`),
		sixty:    regexp.MustCompile(`^int64_t `),
		errno:    regexp.MustCompile(`\bECO_(E[A-Z]+) = (\d+)\b`),
	},
	{
		name: "Rust", files: rust.Files, uses: "call::",
		declares: regexp.MustCompile(`(?m)^    (pub) fn (\w+)\(([^)]*)\) -> i64;$`),
		sixty:    regexp.MustCompile(`: i64$`),
		errno:    regexp.MustCompile(`(?m)^    (E[A-Z]+) = (\d+), "`),
	},
	{
		name: "AssemblyScript", files: assemblyscript.Files, uses: "host.",
		declares: regexp.MustCompile(`(?m)^@external\("` + abi.Module + `", "(\w+)"\) export declare function (\w+)\(([^)]*)\): i64;$`),
		sixty:    regexp.MustCompile(`: i64$`),
		errno:    regexp.MustCompile(`(?m)^  (E[A-Z]+) = (\d+), // `),
	},
}

func (b *binding) text(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := fs.WalkDir(b.files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := b.files.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil || all.Len() == 0 {
		t.Fatalf("%s: %v", b.name, err)
	}
	return all.String()
}

// Each binding declares each function of the table with its parameters, and nothing else.
func TestBindingsDeclareTheTable(t *testing.T) {
	for i := range bindings {
		b := &bindings[i]
		text := b.text(t)
		declared := map[string]bool{}
		for _, m := range b.declares.FindAllStringSubmatch(text, -1) {
			name := strings.TrimPrefix(m[2], b.prefix)
			row, known := abi.FunctionByName(name)
			if !known || declared[name] || (m[1] != "pub" && m[1] != name) {
				t.Errorf("%s: %q is not in the table, or declared twice, or under another name", b.name, m[0])
				continue
			}
			declared[name] = true
			var got []abi.ValueType
			for _, p := range strings.Split(m[3], ", ") {
				switch {
				case p == "" || p == "void":
				case b.sixty.MatchString(p):
					got = append(got, abi.I64)
				default:
					got = append(got, abi.I32)
				}
			}
			var want []abi.ValueType
			for _, p := range row.Params {
				want = append(want, p.Type)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s takes %v, the table says %v", b.name, name, got, want)
			}
		}
		for _, row := range abi.Functions() {
			if !declared[row.Name] {
				t.Errorf("%s has no %s", b.name, row.Name)
			}
			if b.uses != "" && !regexp.MustCompile(regexp.QuoteMeta(b.uses+row.Name)+`[,)(]`).MatchString(text) {
				t.Errorf("%s: nothing for people uses %s", b.name, row.Name)
			}
		}
	}
}

// Each binding has each error number under its name.
func TestBindingsNumberTheErrors(t *testing.T) {
	for i := range bindings {
		b := &bindings[i]
		text := b.text(t)
		got := map[string]string{}
		for _, m := range b.errno.FindAllStringSubmatch(text, -1) {
			got[m[1]] = m[2]
		}
		for _, e := range abi.Errnos() {
			if got[e.Name] != strconv.Itoa(int(e.Errno)) {
				t.Errorf("%s: %s is %q, the table says %d", b.name, e.Name, got[e.Name], e.Errno)
			}
			delete(got, e.Name)
		}
		if len(got) > 0 {
			t.Errorf("%s has error numbers that are in no table: %v", b.name, got)
		}
	}
}

// Where names are listed in the order of their numbers, the order is the table's.
func TestBindingsNameTheErrors(t *testing.T) {
	want := `"OK"`
	for _, e := range abi.Errnos() {
		want += `,"` + e.Name + `"`
	}
	space := regexp.MustCompile(`\s+`)
	for _, b := range bindings {
		if b.name != "Rust" && !strings.Contains(space.ReplaceAllString(b.text(t), ""), want) {
			t.Errorf("%s does not list the names in the order of the table", b.name)
		}
	}
}

// shown is how the examples of the Go SDK call each host function.
var shown = map[string]string{
	"input": "guest.Input(", "result_read": "guest.Input(", "result_meta": "guest.KV.Item(", "output": "guest.Output(", "error": "guest.Fail(",
	"log": "guest.Logf(", "time_now": "guest.Now(", "random": "guest.Random(",
	"kv_get": "guest.KV.Get(", "kv_put": "guest.KV.Put(", "kv_delete": "guest.KV.Delete(", "kv_list": "guest.KV.List(",
	"file_stat": "guest.Files.Stat(", "file_read": "guest.Files.Read(", "file_list": "guest.Files.List(", "file_create": "guest.Files.Create(",
	"file_write": "guest.Files.Write(", "file_replace": "guest.Files.Replace(", "file_edit": "guest.Files.Edit(", "file_copy": "guest.Files.Copy(",
	"file_move": "guest.Files.Move(", "file_remove": "guest.Files.Remove(", "file_mkdir": "guest.Files.Mkdir(",
	"file_grep": "guest.Files.Grep(", "file_glob": "guest.Files.Glob(",
	"capability_invoke": "guest.Invoke(", "http_fetch": "guest.Fetch(", "secret_hmac": "guest.HMAC(", "audit_query": "guest.AuditQuery(",
}

// Each host function is called in a runnable example of the Go SDK.
func TestEachFunctionHasAnExample(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range abi.Functions() {
		if how := shown[f.Name]; how == "" || !strings.Contains(string(examples), how) {
			t.Errorf("no example calls %s (%s)", f.Name, how)
		}
	}
}

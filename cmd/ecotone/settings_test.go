package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// golden holds a file of the repository to what the program says.
func golden(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what go test ./cmd/ecotone -update would write:\n%s", name, diff)
	}
}

// The table and the flags are the same settings.
func TestSettingsAreTheFlags(t *testing.T) {
	parser, err := kong.New(&CLI{}, nameVariables())
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ Name, Env, Default, Enum, Help string }
	var want []row
	for _, s := range (&Settings{}).table() {
		if s.Kind.Name == "" {
			t.Errorf("%s is of a kind that a file cannot have", s.Key)
		}
		if !strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s is not explained in sentences", s.Key)
		}
		want = append(want, row{s.Key, s.Env, s.Default, strings.Join(s.Enum, ","), s.Help})
	}
	for _, leaf := range parser.Model.Leaves(false) {
		if name := leaf.Path(); name != "serve" && name != "ecotone serve" && !strings.HasSuffix(name, "config print") {
			continue
		}
		var got []row
		for _, f := range leaf.Flags {
			if f.Name != "help" && f.Name != "redacted" {
				got = append(got, row{f.Name, strings.Join(f.Envs, ","), f.Default, f.Enum, f.Help})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", leaf.Path(), diff)
		}
	}
}

// The schema is the program's, in docs/ for editors to use, and so is the page.
func TestSettingsSchema(t *testing.T) {
	golden(t, "../../docs/configuration.schema.json", settingsSchema())
}

func TestSettingsPage(t *testing.T) {
	golden(t, "../../docs/configuration.md", settingsPage())
}

func settingsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Configuration

What ` + "`ecotone serve`" + ` can be told, in one table. A setting is a flag, or an environment variable, or a key of a file; a flag goes before a
variable, a variable before the file, the file before the default. Made from the program by ` + "`go test ./cmd/ecotone -update`" + `.

` + "```yaml" + `
# ecotone serve --config ecotone.yaml, or ECOTONE_CONFIG=ecotone.yaml
data: /var/lib/ecotone
listen: 0.0.0.0:8180
tls-cert: /etc/ecotone/tls.crt
tls-key: /etc/ecotone/tls.key
host-name: [gateway.example.com]
org-weight: {acme: 300}
` + "```" + `

- The file is YAML, of which JSON is a form: one mapping, each key once, no aliases, 1 MiB at most. A value has the kind that the table says: a number is no text.
  Its JSON Schema is [configuration.schema.json](configuration.schema.json), and ` + "`ecotone config schema`" + `.
- An unknown key is refused, and so is an unknown variable that begins with ` + "`ECOTONE_`" + `: with a typing error in it a setting would not be in force. A Kubernetes
  service named ` + "`ecotone`" + ` makes such variables; ` + "`enableServiceLinks: false`" + ` ends that.
- ` + "`ecotone config check [FILE]`" + ` checks as ` + "`serve`" + ` would, and reads the certificate and the key file; ` + "`ecotone config print`" + ` takes the flags of ` + "`serve`" + ` and prints what they
  come to, with where each value is from; ` + "`--output json`" + ` for programs. Secrets are left out unless ` + "`--redacted=false`" + ` is given.
- Lists and numbers by name are written as ` + "`a,b`" + ` and ` + "`a=1;b=2`" + ` in a variable.
- On SIGHUP the settings are read again. New values of those marked *value* are taken, and the contents of the files named by those marked *content* (certificates
  are also looked at every ten seconds); other changes are named in the log and take a restart. What does not read changes nothing.

| key | flag | variable | kind | default | SIGHUP | |
|---|---|---|---|---|---|---|
`)
	for _, s := range (&Settings{}).table() {
		key, env, def, kind := "`"+s.Key+"`", "`"+s.Env+"`", "`"+s.Default+"`", s.Kind.Name
		if !s.File {
			key = ""
		}
		if s.Env == "" {
			env = ""
		}
		if s.Default == "" {
			def = ""
		}
		if s.Enum != nil {
			kind = "`" + strings.Join(s.Enum, "`, `") + "`"
		}
		usage := "--" + s.Key
		if s.Unit != "" {
			usage += " " + s.Unit
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s |\n", key, usage, env, kind, def, s.Reload, s.Help)
	}
	b.WriteString("\nNo setting is a secret: the ones that are needed are in files that settings name.\n")
	return b.Bytes()
}

// files are settings as they may be in a file, and what is said of them when they are refused.
var files = []struct{ text, refused string }{
	{"", ""},
	{"# nothing\n", ""},
	{"null", ""},
	{`{"listen":"127.0.0.1:1","dev":true,"subject-rate":5,"host-name":["a","b"],"org-weight":{"acme":7},"drain-timeout":"3s"}`, ""},
	{"memory-budget: 1GiB\naudit-durability: process\n", ""},
	{"host-name: []\norg-weight: {}\n", ""},
	{"listne: x\n", `line 1: "listne" is no setting`},
	{"listen: x\nconfig: y\n", "line 2: config cannot be in a file"},
	{"accept-policy-mark: true\n", "line 1: accept-policy-mark cannot be in a file"},
	{"listen: x\nlisten: y\n", "line 2: listen is there twice"},
	{"listen: 5\n", "line 1: listen is not a text"},
	{"listen:\n", "line 1: listen is not a text"},
	{"dev: yes please\n", "line 1: dev is not a true or false"},
	{"dev: 'true'\n", "line 1: dev is not a true or false"},
	{"subject-rate: '5'\n", "line 1: subject-rate is not a number"},
	{"subject-rate: 1.5\n", "line 1: subject-rate is not a number"},
	{"subject-rate: 99999999999999999999\n", "line 1: subject-rate is not a number"},
	{"drain-timeout: 5\n", "line 1: drain-timeout is not a duration"},
	{"host-name: a\n", "line 1: host-name is not a list of texts"},
	{"host-name: [1]\n", "line 1: host-name is not a list of texts"},
	{"org-weight: {acme: many}\n", "line 1: org-weight is not a numbers by name"},
	{"org-weight: {acme: 1, acme: 2}\n", "line 1: org-weight is not a numbers by name"},
	{"listen: &a x\ndata: *a\n", "line 2: data is not a text"},
	{"[listen]\n", "line 1: the settings are one mapping of keys to values"},
	{"listen: x\n---\nlisten: y\n", "there is more than one document"},
	{"listen: [\n", "yaml: line 1: did not find expected node content"},
	{"log-level: loud\n", `--log-level must be one of "debug","info","warn","error" but got "loud"`},
	{"memory-budget: 5\n", "line 1: memory-budget is not a size"},
	{"memory-budget: 1KiB\n", `--memory-budget: "1KiB" is too little: it takes 16MiB at least`},
}

// PF-H10, and what is unknown is refused: a file is read to the letter, and the schema says the same of it.
func TestSettingsFiles(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(settingsSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("urn:settings", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("urn:settings")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(name, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := parse([]string{"serve", "--config", name}, io.Discard, io.Discard)
		said := ""
		if err != nil {
			said = strings.TrimPrefix(err.Error(), name+": ")
		}
		if said != f.refused {
			t.Errorf("%q: %q, expected %q", f.text, said, f.refused)
		}
		var v any
		if yaml.Unmarshal([]byte(f.text), &v) != nil || v == nil || strings.ContainsAny(f.text, "&") || strings.Contains(f.text, "---") || strings.Contains(f.text, "1KiB") {
			continue // what YAML alone decides, or the value's size
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); (err != nil) != (f.refused != "") {
			t.Errorf("%q: the schema says %v", f.text, err)
		}
	}
}

// A file is read without harm, whatever is in it; what is taken has keys of the table only.
func FuzzSettings(f *testing.F) {
	for _, c := range files {
		f.Add([]byte(c.text))
	}
	keys := map[string]bool{}
	for _, s := range (&Settings{}).table() {
		keys[s.Key] = s.File
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		values, err := parseSettings(raw)
		for key := range values {
			if err != nil || !keys[key] {
				t.Errorf("%q is taken: %v", key, err)
			}
		}
	})
}

// Each variable that exists is a flag's, or named; what else begins alike is refused.
func TestUnknownVariables(t *testing.T) {
	parser, err := kong.New(&CLI{}, nameVariables())
	if err != nil {
		t.Fatal(err)
	}
	if err := unknownVariables(parser.Model, []string{"HOME=/", "ECOTONE_LISTEN=x", "ECOTONE_TOKEN_FILE=x", "ECOTONE_VERIFY=all", "ECOTONE_DEV=true"}); err != nil {
		t.Error(err)
	}
	for _, entry := range []string{"ECOTONE_LISTNE=x", "ECOTONE_ACCEPT_POLICY_MARK=true", "ECOTONE_SERVICE_HOST=10.0.0.1", "ECOTONE_=x"} {
		name, _, _ := strings.Cut(entry, "=")
		if err := unknownVariables(parser.Model, []string{entry}); err == nil || !regexp.MustCompile(`\b`+name+` is no setting`).MatchString(err.Error()) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

// A setting's variable says something or is not there.
func TestEmptyVariables(t *testing.T) {
	parser, err := kong.New(&CLI{}, nameVariables())
	if err != nil {
		t.Fatal(err)
	}
	if err := unknownVariables(parser.Model, []string{"ECOTONE_LISTEN="}); err == nil || !strings.Contains(err.Error(), "ECOTONE_LISTEN is empty") {
		t.Error(err)
	}
}

// A size is printed as it is read.
func TestSizeText(t *testing.T) {
	for _, text := range []string{"16MiB", "3GiB", "1025MiB", "20480KiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		var again Size
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%s is printed as %s: %v", text, s, err)
		}
	}
}

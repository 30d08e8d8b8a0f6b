package gate

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

var update = flag.Bool("update", false, "write docs/checks.md")

// followed says what follows each kind of suggestion.
var followed = [][2]string{
	{"request-grant", "`POST /v1/grants` with the subject, capability and environment; where a `grant` is named, replacing it, with what it names and the `globs`, `url` or `space`"},
	{"request-install", "`PUT /v1/installs/{biome}` of its newest version with what is admitted already, and the `environment`, `call`, `endpoint` or `secret`"},
	{"request-enable", "`POST /v1/biomes/{biome}/enable`"},
	{"request-endpoint", "`PUT /v1/endpoints/{name}` that admits the `url`, for a name that the biome's manifest requires; then as request-install"},
	{"request-ceiling", "the organisation's override of the environment, up to the `classification`"},
	{"switch-environment", "`POST /v1/sessions` in the `environment`"},
	{"open-session", "`POST /v1/sessions` in the same environment, cleared for the `classification` where one is named"},
	{"use-successor", "the same call of the `capability`"},
	{"use-another-capability", "the same call of the `capability`, another major of it that works now; where none is named, nothing makes it work"},
	{"use-less-sensitive-data", "the same call with `Ecotone-Classification` at most the `classification`"},
	{"correct-input", "the same call with input that satisfies the capability's schema"},
	{"wait", "the same call after so many `seconds`"},
	{"await-approval", "`POST /v1/approvals/{id}/approve` by somebody else"},
}

// page is docs/checks.md.
func page() []byte {
	var b bytes.Buffer
	b.WriteString(`# The checks of a decision

Written by ` + "`make generate`" + ` from the table in ` + "`gateway/gate`" + `; a test holds that it is.

Every invocation, of a caller and of a capability, is judged by these checks over one snapshot of policy. All are judged and all are in the
row and in an explanation; the first that fails names the code. A check that judges what may not be told, or what is not there, is not
reached. In ` + "`trusted-dev`" + ` the grants are waived.

| | check | asks | code | suggests |
|---|---|---|---|---|
`)
	for i, c := range Checks() {
		codes := "`" + string(c.Code) + "`"
		for _, closer := range c.Closer {
			codes += ", `" + string(closer) + "`"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", i+1, c.Name, c.Asks, codes, c.Suggest)
	}
	b.WriteString(`
## Suggestions

A denial suggests something for each failed check, in the same order, and a receipt for each host call that the boundary refused. What each
is about is in members of its own. Whoever may do what the first of them says brings the same call past its check; doing that until
the call works takes no more rounds than there are checks. A closer kind may take the place of the check's own.

| kind | what follows it |
|---|---|
`)
	for _, f := range followed {
		fmt.Fprintf(&b, "| %s | %s |\n", f[0], f[1])
	}
	return b.Bytes()
}

// docs/checks.md is made of the table, names everything that a check may suggest, and -update writes it.
func TestChecksPage(t *testing.T) {
	const path = "../../docs/checks.md"
	if *update {
		if err := os.WriteFile(path, page(), 0o644); err != nil { //nolint:gosec // documentation is for everybody
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page()), string(have)); diff != "" {
		t.Errorf("docs/checks.md is not what the table makes (make generate):\n%s", diff)
	}
	for _, c := range Checks() {
		if !slices.ContainsFunc(followed, func(f [2]string) bool { return f[0] == c.Suggest }) {
			t.Errorf("%s suggests %q, which is not described", c.Name, c.Suggest)
		}
		if c.Asks == "" || !strings.HasSuffix(c.Asks, "?") {
			t.Errorf("%s asks %q", c.Name, c.Asks)
		}
	}
}

// A check fails with its own code or a closer one of its row, and with nothing else: the table says all it may name.
func TestChecksNameTheirCodes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		d := decide(w, drawFacts(rt, w))
		for i, r := range d.Checks {
			c := Checks()[i]
			if (r.State == Failed) != (r.Code != "") || r.State == Failed && r.Code != c.Code && !slices.Contains(c.Closer, r.Code) {
				rt.Fatalf("%s is %s with %q", c.Name, r.State, r.Code)
			}
		}
		if d.Code != "" && !slices.ContainsFunc(d.Checks[:], func(r Result) bool { return r.Code == d.Code }) && d.Pending == 0 && d.Code != abi.CodeMissingGrant {
			rt.Fatalf("the decision's code %s is of no check: %+v", d.Code, d.Checks)
		}
	})
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

const packaging = "../../.ci/package/"

func run(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("%v: exit code %d: %s", args, code, &errs)
	}
	return out.String()
}

// The completion of bash knows every command, and completes as people type.
func TestCompletionOfBash(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: there is no bash here")
	}
	script := filepath.Join(t.TempDir(), "ecotone.bash")
	if err := os.WriteFile(script, []byte(run(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	complete := func(words ...string) string {
		list := `"` + strings.Join(words, `" "`) + `"`
		out, err := exec.Command(shell, "-c", fmt.Sprintf(`. %s; COMP_WORDS=(%s); COMP_CWORD=%d; _ecotone; echo "${COMPREPLY[@]}"`, script, list, len(words)-1)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, c := range []struct{ typed, becomes string }{
		{"ecotone ser", "serve"},
		{"ecotone audit ver", "verify"},
		{"ecotone --output json audit exp", "export"},
		{"ecotone audit list --verd", "--verdict"},
		{"ecotone serve --tls-c", "--tls-cert"},
		{"ecotone config pri", "print"},
		{"ecotone nonsense x", ""},
	} {
		if got := complete(strings.Fields(c.typed)...); got != c.becomes {
			t.Errorf("%q becomes %q", c.typed, got)
		}
	}
	if got := complete("ecotone", "audit", ""); !strings.Contains(got, "list") || !strings.Contains(got, "ls") {
		t.Errorf("after audit come %q", got)
	}
}

// All three completions and the manual page have every command and every flag.
func TestCompletionsAndManualAreWhole(t *testing.T) {
	parser, err := kong.New(&CLI{}, kong.Name("ecotone"), nameVariables())
	if err != nil {
		t.Fatal(err)
	}
	manual := strings.ReplaceAll(run(t, "man"), `\-`, "-")
	for _, leaf := range parser.Model.Leaves(true) {
		path := regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(leaf.Path(), "") // without aliases
		for _, shell := range []string{"bash", "zsh", "fish"} {
			if !strings.Contains(run(t, "completion", shell), "flags:"+path) {
				t.Errorf("%s does not know %s", shell, path)
			}
		}
		if !strings.Contains(manual, ".SS "+leaf.Path()) {
			t.Errorf("the manual has no %s", path)
		}
		for _, f := range leaf.Flags {
			if f.Name != "help" && !strings.Contains(manual, ".B --"+f.Name) {
				t.Errorf("the manual has no --%s", f.Name)
			}
		}
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
		cmd.Stdin = strings.NewReader(run(t, "man"))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff says %v %s", err, out)
		}
	} else {
		t.Log("SKIPPED: there is no groff here")
	}
	for shell, program := range map[string]string{"zsh": "zsh", "fish": "fish"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("SKIPPED: there is no %s here", program)
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(run(t, "completion", shell))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s does not read its completion: %v %s", shell, err, out)
		}
	}
}

// The unit stops the server no sooner than it drains, runs the settings that are packaged, and is
// as closed as it can be; the one thing that must be open is, with its reason.
func TestUnit(t *testing.T) {
	raw, err := os.ReadFile(packaging + "ecotone.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := string(raw)
	for _, line := range []string{
		"ExecStart=/usr/bin/ecotone serve --config /etc/ecotone/ecotone.yaml", "ExecReload=/bin/kill -HUP $MAINPID", "User=ecotone", "NoNewPrivileges=yes",
		"ProtectSystem=strict", "CapabilityBoundingSet=", "MemoryDenyWriteExecute=no",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the unit has no %s", line)
		}
	}
	m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(unit)
	var cli CLI
	parser, err := kong.New(&cli, nameVariables())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve"}); err != nil {
		t.Fatal(err)
	}
	if stop, err := time.ParseDuration(m[1]); err != nil || stop < cli.Serve.DrainTimeout+10*time.Second {
		t.Errorf("the unit stops after %s, the server drains for %s", m[1], cli.Serve.DrainTimeout)
	}
	if out := run(t, "config", "check", packaging+"ecotone.yaml"); out != "ok\n" {
		t.Error(out)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: there is no systemd-analyze here")
	}
	if out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=20", packaging+"ecotone.service").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the package descriptions name is there, and the two agree about it.
func TestPackageDescriptions(t *testing.T) {
	type contents []struct{ Src, Dst, Type string }
	var nfpm struct{ Contents contents }
	var release struct{ Nfpms []struct{ Contents contents } }
	for name, into := range map[string]any{"nfpm.yaml": &nfpm, "goreleaser.yaml": &release} {
		raw, err := os.ReadFile(packaging + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if len(nfpm.Contents) < 9 || len(release.Nfpms) != 1 {
		t.Fatal("the descriptions have another form")
	}
	packaged := map[string]string{}
	for _, c := range append(nfpm.Contents, release.Nfpms[0].Contents...) {
		if !strings.HasPrefix(c.Src, "${STAGE}") {
			if _, err := os.Stat("../../" + c.Src); err != nil {
				t.Error(err)
			}
		}
		if was := packaged[c.Src]; was != "" && was != c.Dst {
			t.Errorf("%s goes to %s and to %s", c.Src, was, c.Dst)
		}
		packaged[c.Src] = c.Dst
		if c.Dst == "/etc/ecotone/ecotone.yaml" && c.Type != "config|noreplace" {
			t.Error("an upgrade would overwrite the settings")
		}
	}
	raw, err := os.ReadFile(packaging + "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, image, found := strings.Cut(string(raw), "\nFROM scratch\n")
	if !found || !strings.Contains(image, "\nUSER 65532:65532\n") || !strings.Contains(image, "ca-certificates.crt") || strings.Contains(image, "RUN") {
		t.Error("the image is not a binary and the roots alone, or runs as root")
	}
}

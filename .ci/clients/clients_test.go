package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// root is the repository's.
const root = "../.."

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// gateway starts the real binary with the notes biome built beside it, and answers what a client needs to
// know of both, as its environment.
func gateway(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	binary, data := filepath.Join(dir, "ecotone"), filepath.Join(dir, "data")
	run(t, root, []string{"CGO_ENABLED=0"}, "go", "build", "-buildvcs=false", "-o", binary, "./cmd/ecotone")
	run(t, root, nil, "go", "run", "./biomes/build/cmd", "-o", filepath.Join(dir, "biomes"))
	cmd := exec.Command(binary, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway did not end well: %v", err)
		}
	})
	var ready struct{ Event, Invoke, Admin string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &ready) != nil || ready.Event != "ready" {
		t.Fatalf("the gateway said %q (%v)", line, err)
	}
	token, err := os.ReadFile(filepath.Join(data, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	job, err := filepath.Abs("job.json")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"ECOTONE_INVOKE=" + url(ready.Invoke), "ECOTONE_ADMIN=" + url(ready.Admin), "ECOTONE_TOKEN=" + strings.TrimSpace(string(token)),
		"ECOTONE_MODULE=" + filepath.Join(dir, "biomes", "notes.wasm"), "ECOTONE_JOB=" + job,
	}
}

func url(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// A generated Go client.
func TestGo(t *testing.T) {
	for _, name := range []string{"control", "data"} {
		if err := os.MkdirAll(filepath.Join("gen", name), 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, ".", nil, "go", "tool", "oapi-codegen", "-package", name, "-generate", "types,client",
			"-o", filepath.Join("gen", name, "client.go"), filepath.Join(root, "docs", "openapi-"+name+".json"))
	}
	said := run(t, ".", gateway(t), "go", "run", "-tags", "generated", "./drive")
	if !strings.HasSuffix(strings.TrimSpace(said), "done") {
		t.Errorf("the driver said %s", said)
	}
}

// A generated TypeScript client, checked by the compiler and run by Node.js.
func TestTypeScript(t *testing.T) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: there is no %s on this machine, so no TypeScript client", tool)
		}
	}
	const ts = "ts"
	if out, err := exec.Command("npm", "--prefix", ts, "ci", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the generator of TypeScript clients cannot be installed: %v\n%s", err, out)
	}
	for _, name := range []string{"control", "data"} {
		document, err := filepath.Abs(filepath.Join(root, "docs", "openapi-"+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		run(t, ts, nil, "npx", "--no-install", "openapi-typescript", document, "-o", "gen/"+name+".ts")
	}
	run(t, ts, nil, "npx", "--no-install", "tsc")
	said := run(t, ts, gateway(t), "node", "out/drive.js")
	if !strings.HasSuffix(strings.TrimSpace(said), "done") {
		t.Errorf("the driver said %s", said)
	}
}

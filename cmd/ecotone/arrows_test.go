package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const modulePath = "github.com/ecotone-dev/ecotone"

// arrows says, for each folder, which folders of this module it may import besides itself.
// cmd → gateway → host → abi ← guest.
var arrows = map[string][]string{
	"abi":        {},
	"guest":      {"abi"},
	"host":       {"abi"},
	"gateway":    {"abi", "host"},
	"biomes":     {"abi", "guest", "host"}, // host: the build tool embeds the manifest with the structural reader
	"testdata":   {"abi", "guest", "host"},
	"cmd":        {"abi", "host", "gateway", "biomes", "guest"},
	"benchmarks": {"abi", "host", "gateway", "biomes", "guest"},
}

// pure lists packages that must not reach, directly or not, certain others.
var pure = map[string][]string{
	"gateway/gate": {"net/http", "github.com/valyala/fasthttp", "github.com/tetratelabs/wazero", "github.com/dgraph-io/badger/v4", modulePath + "/gateway/store"},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps,Standard"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// TestArrows holds the direction of imports between the top-level folders.
func TestArrows(t *testing.T) {
	pkgs := goList(t, "./...")
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages listed", len(pkgs))
	}
	for _, p := range pkgs {
		rel := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		folder, _, _ := strings.Cut(rel, "/")
		allowed, known := arrows[folder]
		if !known {
			t.Errorf("%s is in no known folder", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, modulePath+"/")
			to, _, _ = strings.Cut(to, "/")
			switch {
			case ours && to != folder && !contains(allowed, to):
				t.Errorf("%s imports %s: arrows go cmd → gateway → host → abi ← guest", p.ImportPath, imp)
			case !ours && (rel == "abi" || folder == "guest") && strings.Contains(strings.Split(imp, "/")[0], "."):
				t.Errorf("%s imports %s: only the standard library is allowed there", p.ImportPath, imp)
			}
		}
		for _, banned := range pure[rel] {
			if contains(p.Deps, banned) {
				t.Errorf("%s depends on %s, which it must not know", p.ImportPath, banned)
			}
		}
	}
}

// TestSyscallsStayHome holds that unsafe and raw system calls live where their invariants are written.
func TestSyscallsStayHome(t *testing.T) {
	home := map[string]string{
		"unsafe":                "host/jail host/memory testdata/guests/internal/scan",
		"golang.org/x/sys/unix": "host/jail gateway/audit/disk host/memory",
	}
	for _, p := range goList(t, "./...") {
		rel := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		for imp, at := range home {
			if contains(p.Imports, imp) && !contains(strings.Fields(at), rel) {
				t.Errorf("%s imports %s; its home is %s", rel, imp, at)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// PF-B15, PF-B18: one package of the server dials, and it is the guarded one: no configuration, no
// probe and no convenience opens a connection of its own. The command line is a client and
// reaches the server only.
func TestOneDialer(t *testing.T) {
	dialers := regexp.MustCompile(`net\.Dial|net\.Dialer|http\.(Get|Post|Head|PostForm|Client|DefaultClient|Transport|DefaultTransport)\b|fasthttp\.(Client|HostClient|Do|Get|Post)\b`)
	home := map[string]bool{"host/network": true, "cmd/ecotone": true, "cmd/demo": true, "gateway/servertest": true}
	found := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.Join("..", "..")+string(filepath.Separator)))
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if m := dialers.Find(raw); m != nil {
			found[dir] = true
			if !home[dir] && !strings.HasPrefix(dir, "benchmarks") {
				t.Errorf("%s uses %s; only host/network dials", path, m)
			}
		}
		return nil
	})
	if err != nil || !found["host/network"] {
		t.Fatalf("the search found %v: %v", found, err)
	}
}

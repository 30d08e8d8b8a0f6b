package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
)

// Every language's folder is told from its files, has a valid manifest of its name, and nothing in it is
// left to fill in or belongs to this repository's own tests.
func TestNew(t *testing.T) {
	for _, l := range build.Languages() {
		dir := filepath.Join(t.TempDir(), "a", "b")
		if err := New(dir, "my-biome2", l); err != nil {
			t.Fatal(l, err)
		}
		if got, err := build.Detect(dir); got != l {
			t.Errorf("%s looks like %q: %v", l, got, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		if m, problems := abi.DecodeManifest(raw); problems != nil || m.Name != "my-biome2" {
			t.Errorf("%s: %v", l, problems)
		}
		for _, name := range []string{"tests.json", "Makefile", ".gitignore", "sdk"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s: %v", l, err)
			}
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(dir, path)
			text, err := os.ReadFile(path)
			own := !strings.HasPrefix(rel, "sdk")
			if own && strings.Count(string(text), "%") > 0 && rel != "greet_test.go" {
				t.Errorf("%s: %s has a %% left", l, rel)
			}
			if strings.HasSuffix(rel, suffix) || (!own && (strings.HasSuffix(rel, "_test.go") || filepath.Base(rel) == "embed.go")) {
				t.Errorf("%s: %s does not belong here", l, rel)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What is there stays, and what fails leaves nothing.
func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := New(dir, "fine", build.LanguageC); err == nil {
		t.Error("a folder that is there was written to")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	if err := New(link, "fine", build.LanguageC); err == nil {
		t.Error("a link was followed")
	}
	for _, name := range []string{"", "Bad", "a/b", "..", ".", "-a", "a-", "system", "a b", "a\n", strings.Repeat("a", 64)} {
		if err := New(filepath.Join(dir, "new"), name, build.LanguageC); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
	if err := New(filepath.Join(dir, "new"), "fine", "cobol"); err == nil {
		t.Error("cobol is a language")
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something was written")
	}
}

package build

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder's language is what its files say; a folder that says nothing or two things is not guessed at.
func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  Language
		says  string
	}{
		"go":                             {[]string{"main.go"}, LanguageGo, ""},
		"go module":                      {[]string{"go.mod"}, LanguageGo, ""},
		"c":                              {[]string{"a.c", "sdk/ecotone.h"}, LanguageC, ""},
		"rust":                           {[]string{"Cargo.toml", "src/lib.rs"}, LanguageRust, ""},
		"assemblyscript":                 {[]string{"assembly/index.ts", "package.json"}, LanguageAssemblyScript, ""},
		"sources of an sdk do not count": {[]string{"a.c", "sdk/main.go", "sdk/Cargo.toml"}, LanguageC, ""},
		"nothing":                        {[]string{"readme.md", "index.ts"}, "", "no biome to build"},
		"two":                            {[]string{"main.go", "a.c"}, "", "could be a biome in [go c]"},
	} {
		dir := filepath.Join(t.TempDir(), "a[b]*?") // not a glob
		for _, f := range c.files {
			path := filepath.Join(dir, f)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Detect(dir)
		if got != c.want || (err != nil) != (c.says != "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A compiler that is not there is said by name, with what to install.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, l := range []Language{LanguageGo, LanguageC, LanguageAssemblyScript} { // rustc is looked for in /usr/bin too
		var missing *Missing
		if err := Available(t.Context(), t.TempDir(), l); !errors.As(err, &missing) || missing.Language != l || missing.Hint() == "" {
			t.Errorf("%s: %v", l, err)
		}
	}
	if _, err := (&Builder{}).Folder(t.Context(), t.TempDir(), "cobol"); err == nil {
		t.Error("cobol is built")
	}
}

// Package scaffold makes the folder of a new biome: source that builds, a manifest, tests and a Makefile,
// with the SDK of its language in the folder sdk. All of it comes out of this program.
//
// It promises that nothing is downloaded, then or when the biome is built, and that no file that was
// there before is changed.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/guest/assemblyscript"
	"github.com/ecotone-dev/ecotone/guest/c"
	"github.com/ecotone-dev/ecotone/guest/rust"
)

//go:embed files
var files embed.FS

// suffix keeps the tools of other languages, and Go's, from taking templates for source.
const suffix = ".tmpl"

// sdk is source that goes to a folder below sdk.
type sdk struct {
	from fs.FS
	to   string
}

// kind is how a language's biomes begin.
type kind struct {
	sdk    []sdk
	values []string          // pairs for the templates
	more   map[string]string // files beside the templates'
}

// goVersion is what the SDK needs.
const goVersion = "1.26.0"

var kinds = map[build.Language]kind{
	build.LanguageGo: {
		sdk:    []sdk{{guest.Source, "sdk/guest"}, {abi.Source, "sdk/abi"}},
		values: []string{"%FREEZE%", "seeded", "%GO%", goVersion, "%UNIT%", "\n\tgo test .", "%BUILT%", ""},
		more:   map[string]string{"sdk/go.mod": "module github.com/ecotone-dev/ecotone\n\ngo " + goVersion + "\n"},
	},
	build.LanguageC: {
		sdk:    []sdk{{c.Files, "sdk"}},
		values: []string{"%FREEZE%", "auto", "%UNIT%", "", "%BUILT%", ""},
	},
	build.LanguageRust: {
		sdk:    []sdk{{rust.Files, "sdk"}},
		values: []string{"%FREEZE%", "auto", "%UNIT%", "", "%BUILT%", " target"},
	},
	build.LanguageAssemblyScript: {
		sdk:    []sdk{{assemblyscript.Files, "sdk"}},
		values: []string{"%FREEZE%", "auto", "%UNIT%", "", "%BUILT%", ""},
	},
}

// CheckName says why a name cannot be a biome's, or nil. A name is a folder, a package and a capability's
// domain too, so that it is checked before there is anything.
func CheckName(name string) error {
	if !abi.ValidSlug(name) {
		return fmt.Errorf("%s is not a biome's name: lower case letters, digits and inner hyphens, beginning with a letter, at most 63 bytes", abi.Quote(name))
	}
	if slices.Contains(abi.ReservedNames, name) {
		return fmt.Errorf("the name %q is reserved", name)
	}
	return nil
}

// New makes the folder dir, which must not be there, with a biome in the language. When it fails later
// than that, what it wrote is removed.
func New(dir, name string, language build.Language) (err error) {
	k, known := kinds[language]
	if !known {
		return fmt.Errorf("%s is not one of %v", abi.Quote(string(language)), build.Languages())
	}
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; nothing was written", dir)
	} else if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	fill := strings.NewReplacer(append([]string{"%NAME%", name}, k.values...)...)
	for _, templates := range []string{"common", string(language)} {
		sub, err := fs.Sub(files, path.Join("files", templates))
		if err != nil {
			return err
		}
		if err := copyTo(dir, sub, func(name string) string {
			name, isTemplate := strings.CutSuffix(name, suffix)
			switch {
			case !isTemplate:
				return ""
			case name == "gitignore":
				return ".gitignore"
			}
			return name
		}, fill); err != nil {
			return err
		}
	}
	for _, s := range k.sdk {
		if err := copyTo(filepath.Join(dir, filepath.FromSlash(s.to)), s.from, ofSDK, strings.NewReplacer()); err != nil {
			return err
		}
	}
	for name, text := range k.more {
		if err := write(filepath.Join(dir, filepath.FromSlash(name)), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// ofSDK leaves out an SDK's own tests, and what puts it here.
func ofSDK(name string) string {
	if strings.HasSuffix(name, "_test.go") || path.Base(name) == "embed.go" {
		return ""
	}
	return name
}

// copyTo copies the files of from that rename gives a name.
func copyTo(dir string, from fs.FS, rename func(string) string, fill *strings.Replacer) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		to := rename(name)
		if to == "" {
			return nil
		}
		raw, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		return write(filepath.Join(dir, filepath.FromSlash(to)), []byte(fill.Replace(string(raw))))
	})
}

// write makes one new file.
func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

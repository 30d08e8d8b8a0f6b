package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Language is what a biome is written in.
type Language string

// The languages a folder is built from. Others are built by their own tools, and their modules taken as
// they are.
const (
	LanguageGo             Language = "go"
	LanguageC              Language = "c"
	LanguageRust           Language = "rust"
	LanguageAssemblyScript Language = "assemblyscript"
)

// languages says how each is told by what lies in a folder, and how it is compiled.
var languages = []struct {
	name    Language
	marks   []string // globs, relative to the folder
	compile func(ctx context.Context, dir string) ([]byte, error)
}{
	{LanguageGo, []string{"go.mod", "*.go"}, compile},
	{LanguageC, []string{"*.c"}, compileC},
	{LanguageRust, []string{"Cargo.toml"}, compileRust},
	{LanguageAssemblyScript, []string{"assembly/index.ts"}, compileAssemblyScript},
}

// Languages lists them.
func Languages() []Language {
	out := make([]Language, len(languages))
	for i := range languages {
		out[i] = languages[i].name
	}
	return out
}

// Detect says what the biome in a folder is written in. It fails when the folder says nothing, or
// two things.
func Detect(dir string) (Language, error) {
	var found []Language
	for _, l := range languages {
		for _, mark := range l.marks {
			if names, err := filepath.Glob(filepath.Join(escape(dir), mark)); err == nil && len(names) > 0 {
				found = append(found, l.name)
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s holds no go.mod or .go, no .c, no Cargo.toml and no assembly/index.ts: no biome to build", dir)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s could be a biome in %v: say which", dir, found)
}

// escape keeps a folder's name from being read as a glob.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// Folder builds the biome in dir, which is written in the language; empty is what [Detect] says. The
// manifest is embedded and must satisfy its contract, and each capability's export must be there.
func (b *Builder) Folder(ctx context.Context, dir string, language Language) ([]byte, error) {
	if language == "" {
		var err error
		if language, err = Detect(dir); err != nil {
			return nil, err
		}
	}
	if language == LanguageGo {
		return b.Go(ctx, dir)
	}
	for _, l := range languages {
		if l.name != language {
			continue
		}
		manifest, m, err := readManifest(dir)
		if err != nil {
			return nil, err
		}
		module, err := l.compile(ctx, dir)
		if err != nil {
			return nil, err
		}
		return embed(dir, module, manifest, m)
	}
	return nil, fmt.Errorf("%s is not one of %v", abi.Quote(string(language)), Languages())
}

// Missing is the error when a compiler is not on this machine.
type Missing struct {
	Language Language
	Tool     string // what was looked for
	Install  string // what to do
}

func (m *Missing) Error() string {
	return fmt.Sprintf("building %s needs %s, which is not on this machine", m.Language, m.Tool)
}

// Hint says what to install.
func (m *Missing) Hint() string { return m.Install }

// temporary runs a compiler whose result is one file in a folder that is gone afterwards.
func temporary(compiler func(tmp, out string) error) (module []byte, err error) {
	tmp, err := os.MkdirTemp("", "ecotone-build-")
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	out := filepath.Join(tmp, "module.wasm")
	if err := compiler(tmp, out); err != nil {
		return nil, err
	}
	if module, err = os.ReadFile(out); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return module, nil
}

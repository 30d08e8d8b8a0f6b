// Package build makes biomes of folders with source and a manifest.json: it compiles the source with
// what its language has for that (of Go, a reactor for wasip1), and embeds the manifest as the custom
// section a host reads. It downloads nothing; a compiler that is not there is [Missing].
//
// The result of Go depends on the source, the manifest and the Go toolchain alone, to the byte:
// not on the folder the repository is in, its version control, or the caller's environment.
// Results are kept in a cache under a digest of all of these, so that building again costs
// what it takes to read the source. Functions are safe for concurrent use, by several
// processes too.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// ManifestFile is the manifest's name in a biome's folder.
const ManifestFile = "manifest.json"

// recipe is how a reactor is compiled. Version control information would make the bytes
// depend on the commit.
var recipe = []string{"-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// Builder compiles biomes. The zero value uses the user's cache folder.
type Builder struct {
	// Cache is the folder results are kept in; it is made when it is missing. Nothing in it
	// is needed: it may be removed at any time.
	Cache string
}

// Go builds the biome in dir with the default [Builder].
func Go(ctx context.Context, dir string) ([]byte, error) { return (&Builder{}).Go(ctx, dir) }

// All builds the first-party biomes with the default [Builder], by name.
func All(ctx context.Context) (map[string][]byte, error) { return (&Builder{}).All(ctx) }

// Biome builds one first-party biome by name.
func Biome(ctx context.Context, name string) ([]byte, error) { return buildNamed(ctx, "biomes", name) }

// Guest builds one of the guests for tests, testdata/guests/<name>.
func Guest(ctx context.Context, name string) ([]byte, error) {
	return buildNamed(ctx, filepath.Join("testdata", "guests"), name)
}

func buildNamed(ctx context.Context, folder, name string) ([]byte, error) {
	if !abi.ValidSlug(name) {
		return nil, fmt.Errorf("build: %s is not a name", abi.Quote(name))
	}
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	return Go(ctx, filepath.Join(root, folder, name))
}

// Names are the first-party biomes.
func Names() []string { return []string{"http", "notes", "relay", "workspace"} }

// All builds the first-party biomes, by name.
func (b *Builder) All(ctx context.Context) (map[string][]byte, error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]byte)
	for _, name := range Names() {
		if all[name], err = b.Go(ctx, filepath.Join(root, "biomes", name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Go builds the biome in dir, which belongs to a Go module. The manifest must satisfy its
// contract, and each capability's export must be there.
func (b *Builder) Go(ctx context.Context, dir string) ([]byte, error) {
	manifest, m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	cache, err := b.cache()
	if err != nil {
		return nil, err
	}
	key, err := digest(ctx, dir, manifest)
	if err != nil {
		return nil, err
	}
	kept := filepath.Join(cache, m.Name+"-"+key+".wasm")
	if module, err := os.ReadFile(kept); err == nil {
		return module, nil
	}
	module, err := compile(ctx, dir)
	if err != nil {
		return nil, err
	}
	if module, err = embed(dir, module, manifest, m); err != nil {
		return nil, err
	}
	return module, keep(kept, module)
}

// embed puts the manifest into a module that has the exports it names.
func embed(dir string, module, manifest []byte, m *abi.Manifest) ([]byte, error) {
	for _, d := range m.Provides {
		// Exports are the module's to have and admission's to judge; this catches a misspelt one early.
		if !bytes.Contains(module, append(binary.AppendUvarint(nil, uint64(len(d.Export))), d.Export...)) {
			return nil, fmt.Errorf("build: %s: the manifest names export %q and the module has none", dir, d.Export)
		}
	}
	return wasm.AppendCustom(module, abi.ManifestSection, manifest), nil
}

func readManifest(dir string) ([]byte, *abi.Manifest, error) {
	raw, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return nil, nil, fmt.Errorf("build: %w", err)
	}
	m, problems := abi.DecodeManifest(raw)
	if problems != nil {
		return nil, nil, fmt.Errorf("build: %s: %w", filepath.Join(dir, ManifestFile), problems)
	}
	var small bytes.Buffer
	if err := json.Compact(&small, raw); err != nil {
		return nil, nil, fmt.Errorf("build: %w", err)
	}
	return small.Bytes(), m, nil
}

func (b *Builder) cache() (string, error) {
	dir := b.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			user = os.TempDir() // no home folder, as in a container
		}
		dir = filepath.Join(user, "ecotone", "biomes")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build: the cache folder cannot be made: %w", err)
	}
	return dir, nil
}

// keep writes the file whole or not at all.
func keep(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// digest covers everything the result depends on: toolchain, recipe, manifest, and every
// file of every package outside the standard library.
func digest(ctx context.Context, dir string, manifest []byte) (string, error) {
	version, err := run(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	const line = `{{$.ImportPath}}/{{.}}{{"\t"}}{{$.Dir}}/{{.}}{{"\n"}}`
	const format = `{{if not .Standard}}{{range .GoFiles}}` + line + `{{end}}{{range .SFiles}}` + line + `{{end}}{{range .EmbedFiles}}` + line + `{{end}}{{end}}`
	list, err := run(ctx, dir, "list", "-deps", "-f", format, ".")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	part := func(b []byte) {
		fmt.Fprintf(h, "%d:", len(b))
		h.Write(b)
	}
	part(version)
	part([]byte(strings.Join(recipe, "\x00")))
	part(manifest)
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	sort.Strings(lines)
	for _, line := range lines {
		if line == "" {
			continue
		}
		name, path, _ := strings.Cut(line, "\t")
		source, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("build: %w", err)
		}
		part([]byte(name))
		part(source)
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}

func compile(ctx context.Context, dir string) ([]byte, error) {
	return temporary(func(_, out string) error {
		args := append([]string{"build"}, recipe...)
		_, err := run(ctx, dir, append(args, "-o", out, ".")...)
		return err
	})
}

// Root is the folder of the Go module that the current folder belongs to.
func Root(ctx context.Context) (string, error) {
	out, err := run(ctx, ".", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	gomod := strings.TrimSpace(string(out))
	if gomod == "" || gomod == os.DevNull {
		return "", errors.New("build: the current folder belongs to no Go module")
	}
	return filepath.Dir(gomod), nil
}

// run runs the go command in dir for the target of a biome, and returns what it prints. What
// the caller's environment says of flags and experiments does not count.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, &Missing{LanguageGo, "go, the Go toolchain", "install Go 1.26 or newer from https://go.dev/dl"}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("build: go %s in %s: %w\n%s", args[0], dir, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// Write builds the first-party biomes and writes each to dir/<name>.wasm.
func (b *Builder) Write(ctx context.Context, dir string, report io.Writer) error {
	all, err := b.All(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	for _, name := range Names() {
		path := filepath.Join(dir, name+".wasm")
		if err := keep(path, all[name]); err != nil {
			return err
		}
		fmt.Fprintf(report, "%s\t%d bytes\n", path, len(all[name]))
	}
	return nil
}

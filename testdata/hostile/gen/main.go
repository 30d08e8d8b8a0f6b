// Command gen assembles the hostile modules: each NAME.wat becomes NAME.wasm with a manifest
// section, the one in NAME.manifest.json or a default. Two comment lines at the top of a file
// steer it: ";; flags:" adds options for the assembler, ";; manifest: none" leaves the
// manifest out.
//
//	go run ./testdata/hostile/gen          writes the modules
//	go run ./testdata/hostile/gen -check   says which are not what their text says
//
// The assembler is wat2wasm of wabt 1.0.39, from $WAT2WASM or PATH. Without it nothing is
// written or checked, and that is said; the exit status is 0.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
	"github.com/ecotone-dev/ecotone/testdata/hostile/internal/manifest"
)

func main() {
	dir := flag.String("dir", filepath.Join("testdata", "hostile"), "folder of the modules")
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	assembler := os.Getenv("WAT2WASM")
	if assembler == "" {
		assembler = "wat2wasm"
	}
	if _, err := exec.LookPath(assembler); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED: the hostile modules were not assembled or checked: set WAT2WASM or put wat2wasm (npm wabt@1.0.39) on PATH")
		return
	}
	if version, err := exec.Command(assembler, "--version").Output(); err != nil || !current(string(version)) {
		fmt.Fprintf(os.Stderr, "SKIPPED: the hostile modules were not assembled or checked: %s is wabt %s, and their proposals need 1.0.39 (npm wabt@1.0.39)\n", assembler, strings.TrimSpace(string(version)))
		return
	}
	stale, err := run(*dir, assembler, *check)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	if len(stale) > 0 && *check {
		fmt.Fprintln(os.Stderr, "not what their text says, run go run ./testdata/hostile/gen:", strings.Join(stale, " "))
		os.Exit(1)
	}
}

// current reports whether a version of wabt is 1.0.39 or a later one of 1.0.
func current(version string) bool {
	patch, ours := strings.CutPrefix(strings.TrimSpace(version), "1.0.")
	n, err := strconv.Atoi(patch)
	return ours && err == nil && n >= 39
}

// run goes on after a module that does not assemble, so that all complaints come at once.
func run(dir, assembler string, check bool) (stale []string, err error) {
	var failed []error
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".wat") {
			return err
		}
		want, err := build(dir, path, assembler)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", path, err))
			return nil
		}
		out := strings.TrimSuffix(path, ".wat") + ".wasm"
		have, err := os.ReadFile(out)
		if err == nil && bytes.Equal(have, want) {
			return nil
		}
		stale = append(stale, out)
		if check {
			return nil
		}
		return os.WriteFile(out, want, 0o644)
	})
	return stale, errors.Join(append(failed, err)...)
}

func build(dir, path, assembler string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	directives := header(text)
	module, err := assemble(assembler, path, strings.Fields(directives["flags"]))
	if err != nil {
		return nil, err
	}
	if directives["manifest"] == "none" {
		return module, nil
	}
	name, err := filepath.Rel(dir, strings.TrimSuffix(path, ".wat"))
	if err != nil {
		return nil, err
	}
	document, err := os.ReadFile(strings.TrimSuffix(path, ".wat") + ".manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		document, err = manifest.Default(filepath.ToSlash(name)), nil
	}
	if err != nil {
		return nil, err
	}
	return wasm.AppendCustom(module, abi.ManifestSection, document), nil
}

// assemble goes through a file: not every build of the assembler writes to a pipe.
func assemble(assembler, path string, flags []string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "out.wasm")
	complaints, err := exec.Command(assembler, append(flags, path, "-o", out)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, complaints)
	}
	return os.ReadFile(out)
}

// header reads the "key: value" comment lines at the top of a file.
func header(text []byte) map[string]string {
	out := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		comment, ok := strings.CutPrefix(lines.Text(), ";; ")
		if !ok {
			break
		}
		if key, value, ok := strings.Cut(comment, ": "); ok {
			out[key] = value
		}
	}
	return out
}

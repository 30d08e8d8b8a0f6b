package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// versioned finds a tool by its name, or by the newest of the names with a version behind them that
// distributions use; accept may refuse one.
func versioned(name string, accept func(path string) bool) string {
	names := []string{name}
	for v := 30; v >= 11; v-- {
		names = append(names, name+"-"+strconv.Itoa(v))
	}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil && (accept == nil || accept(path)) {
			return path
		}
	}
	return ""
}

// tool runs a compiler in dir and returns what it prints.
func tool(ctx context.Context, dir string, env []string, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("build: %s in %s: %w\n%s", filepath.Base(path), dir, err, strings.TrimSpace(stderr.String()+"\n"+string(out)))
	}
	return out, nil
}

// findC finds a compiler of C and its linker.
func findC(ctx context.Context) (clang, linker string, err error) {
	clang = versioned("clang", func(path string) bool {
		out, err := exec.CommandContext(ctx, path, "--print-targets").Output()
		return err == nil && strings.Contains(string(out), "wasm32")
	})
	linker = versioned("wasm-ld", nil)
	if clang == "" || linker == "" {
		return "", "", &Missing{LanguageC, "clang with the target wasm32, and wasm-ld", "on Debian: apt-get install clang lld; elsewhere install LLVM with clang and lld"}
	}
	return clang, linker, nil
}

// compileC compiles every .c of the folder, with the header of the SDK in its folder sdk.
func compileC(ctx context.Context, dir string) ([]byte, error) {
	clang, linker, err := findC(ctx)
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(filepath.Join(escape(dir), "*.c"))
	if err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("build: %s has no .c", dir)
	}
	for i := range sources {
		sources[i] = "./" + filepath.Base(sources[i]) // messages, and nothing in the module, name the folder
	}
	return temporary(func(_, out string) error {
		args := []string{
			"--target=wasm32", "-std=c11", "-Os", "-Wall", "-ffreestanding", "-nostdlib", "-mbulk-memory", "-I.", "-Isdk",
			"-fuse-ld=" + linker, "-Wl,--no-entry", "-Wl,--strip-all", "-o", out,
		}
		_, err := tool(ctx, dir, nil, clang, append(args, sources...)...)
		return err
	})
}

const rustTarget = "wasm32-unknown-unknown"

// findRust finds cargo, and the environment it needs. Of several toolchains the first that has the
// target is taken, its rustc with the cargo beside it.
func findRust(ctx context.Context, dir string) (cargo string, env []string, err error) {
	rustc, sysroot := "", ""
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin") {
		c, r := filepath.Join(folder, "cargo"), filepath.Join(folder, "rustc")
		if _, err := exec.LookPath(c); err != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, r, "--print", "sysroot")
		cmd.Dir = dir // where a toolchain may be chosen by a file
		root, err := cmd.Output()
		if err != nil {
			continue
		}
		at := strings.TrimSpace(string(root))
		if _, err := os.Stat(filepath.Join(at, "lib", "rustlib", rustTarget)); err == nil {
			cargo, rustc, sysroot = c, r, at
			break
		}
	}
	if cargo == "" {
		return "", nil, &Missing{
			LanguageRust, "cargo and rustc with the target " + rustTarget,
			"rustup target add " + rustTarget + ", or on Debian: apt-get install cargo rustc libstd-rust-dev-wasm32 lld",
		}
	}
	env = []string{"RUSTC=" + rustc}
	if lld, err := filepath.Glob(filepath.Join(sysroot, "lib", "rustlib", "*", "bin", "rust-lld")); err != nil || len(lld) == 0 {
		linker := versioned("wasm-ld", nil)
		if linker == "" {
			return "", nil, &Missing{LanguageRust, "rust-lld or wasm-ld", "on Debian: apt-get install lld"}
		}
		env = append(env, "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="+linker)
	}
	return cargo, env, nil
}

// compileRust has cargo build the folder's one cdylib.
func compileRust(ctx context.Context, dir string) ([]byte, error) {
	cargo, env, err := findRust(ctx, dir)
	if err != nil {
		return nil, err
	}
	if _, err := tool(ctx, dir, env, cargo, "build", "--quiet", "--release", "--lib", "--target", rustTarget, "--target-dir", "target"); err != nil {
		return nil, err
	}
	made, err := filepath.Glob(filepath.Join(escape(dir), "target", rustTarget, "release", "*.wasm"))
	if err != nil || len(made) != 1 {
		return nil, fmt.Errorf("build: cargo made %d modules in %s, and one is wanted: the manifest's crate-type is [\"cdylib\"], and what other names left is removed with target", len(made), dir)
	}
	module, err := os.ReadFile(made[0])
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return module, nil
}

// compileAssemblyScript compiles assembly/index.ts, with the SDK in sdk/assembly where it is there.
func compileAssemblyScript(ctx context.Context, dir string) ([]byte, error) {
	asc, err := ascIn(dir)
	if err != nil {
		return nil, err
	}
	return temporary(func(_, out string) error {
		args := []string{"assembly/index.ts", "-Oz", "--runtime", "stub", "--exportStart", "_initialize", "--outFile", out}
		if _, err := os.Stat(filepath.Join(dir, "sdk", "assembly", "index.ts")); err == nil {
			args = append(args, "--use", "abort=sdk/assembly/index/abort")
		}
		_, err := tool(ctx, dir, nil, asc, args...)
		return err
	})
}

// ascIn finds the compiler of AssemblyScript as npm would: in the folder, in those around it, on the
// path.
func ascIn(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	for {
		asc := filepath.Join(at, "node_modules", ".bin", "asc")
		if path, err := exec.LookPath(asc); err == nil {
			return path, nil
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	if path, err := exec.LookPath("asc"); err == nil {
		return path, nil
	}
	return "", &Missing{LanguageAssemblyScript, "asc, the compiler of AssemblyScript", "npm install assemblyscript in the biome's folder, with Node.js 20 or newer"}
}

// Available says whether a folder in the language can be built here: nil, or [*Missing].
func Available(ctx context.Context, dir string, language Language) (err error) {
	switch language {
	case LanguageC:
		_, _, err = findC(ctx)
	case LanguageRust:
		_, _, err = findRust(ctx, dir)
	case LanguageAssemblyScript:
		_, err = ascIn(dir)
	default:
		_, err = run(ctx, dir, "env", "GOVERSION")
	}
	return err
}

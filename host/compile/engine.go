package compile

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// errWouldCompile is how the engine fails where it would have generated code and may not.
var errWouldCompile = errors.New("the engine would have to compile")

// withoutCompiling returns a context under which the engine decodes, validates and looks into its
// cache, but generates no code: with more than one worker it looks at the context before each
// function, and this one is over. A module that is not in the cache fails with errWouldCompile. A
// module without functions needs no code and succeeds; the interpreter, which generates none,
// does not look.
func withoutCompiling(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errWouldCompile)
	return experimental.WithCompilationWorkers(ctx, 2)
}

// validate has the engine decode and type-check a module completely.
func validate(ctx context.Context, module []byte) error {
	rt := wazero.NewRuntimeWithConfig(ctx, RuntimeConfig())
	defer rt.Close(ctx)
	_, err := rt.CompileModule(withoutCompiling(ctx), module)
	if errors.Is(err, errWouldCompile) {
		return nil
	}
	return err
}

// generate compiles a module into dir, which is new, and returns the path of the engine's file
// relative to dir, with slashes. Where the engine interprets, there is no file and the name is
// empty.
func generate(ctx context.Context, dir string, module []byte) (name string, err error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return "", err
	}
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, RuntimeConfig().WithCompilationCache(cache))
	defer rt.Close(ctx)
	if _, err := rt.CompileModule(ctx, module); err != nil {
		return "", err
	}
	files, err := filesIn(dir)
	switch {
	case err != nil:
		return "", err
	case len(files) > 1:
		return "", errors.New("the engine wrote more than one file")
	case len(files) == 0:
		return "", nil
	}
	return files[0], nil
}

// filesIn lists what is in dir and below it and is not a directory, relative, with slashes.
func filesIn(dir string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// probeModule is what the fingerprint is taken from: its code depends on the context checks (a loop
// and a call), on bounds checks (a load) and on each CPU feature the engine looks for (popcnt, clz,
// nearest).
//
//	(memory 1)
//	(func $f (param i32) (result i64)
//	  (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
//	  (i64.add
//	    (i64.add (i64.popcnt (i64.load (local.get 0))) (i64.clz (call $f (local.get 0))))
//	    (i64.trunc_f64_s (f64.nearest (f64.convert_i32_s (local.get 0))))))
var probeModule = []byte{
	0x00, 'a', 's', 'm', 1, 0, 0, 0,
	1, 6, 1, 0x60, 1, 0x7f, 1, 0x7e,
	3, 2, 1, 0,
	5, 3, 1, 0, 1,
	10, 34, 1, 32, 0,
	0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b,
	0x20, 0, 0x29, 3, 0, 0x7b,
	0x20, 0, 0x10, 0, 0x79, 0x7c,
	0x20, 0, 0xb7, 0x9e, 0xb0, 0x7c,
	0x0b,
}

// fingerprint stands for everything that native code depends on beside the module: engine, its
// configuration, platform and CPU. It is a hash over these and over what the engine makes of the
// probe module under its own cache name, which hashes the CPU features. dir is new.
func fingerprint(ctx context.Context, dir string) (string, error) {
	name, err := generate(ctx, dir, probeModule)
	if err != nil {
		return "", err
	}
	var code []byte
	if name != "" {
		if code, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(configText), []byte(engineVersion()), []byte(platform()), []byte(name), code} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

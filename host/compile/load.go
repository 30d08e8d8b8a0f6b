package compile

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
)

var (
	parentCompiles atomic.Uint64
	errOtherModule = errors.New("the artifact is the code of other bytes")
)

// ParentCompiles counts loads of this process in which the engine went past the point where it
// would have to compile, as its writing to the artifact's directory shows. It is 0, always; tests
// and a metric assert it (S14).
func ParentCompiles() uint64 { return parentCompiles.Load() }

// LoadModule loads an artifact into a runtime of its own (S11), without compiling: if the engine
// does not find exactly the artifact's code for exactly these bytes, it is stopped before it
// generates any, the artifact is dropped and queued to be made again, and the answer is
// IMAGE_NOT_READY. config is [RuntimeConfig], without a compilation cache. The caller closes the
// runtime, which closes the compiled module and the engine with it.
//
// Where the platform has no native code there is nothing to load and the interpreter reads the
// module, which a child has validated.
func LoadModule(ctx context.Context, config wazero.RuntimeConfig, a *Artifact, module []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	dir, release, err := a.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	var rt wazero.Runtime
	var compiled wazero.CompiledModule
	if a.module == sha256.Sum256(module) {
		rt, compiled, err = loadFrom(ctx, config, dir, a.name, module)
	} else {
		err = errOtherModule
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, contextError(ctx.Err())
		}
		a.owner.reject(a.digest, err)
		return nil, nil, abi.Errorf(abi.CodeImageNotReady, "the compiled form did not load and is made again: %w", err)
	}
	return rt, compiled, nil
}

// loadFrom loads the engine's file name below dir, and proves that nothing else happened there.
func loadFrom(ctx context.Context, config wazero.RuntimeConfig, dir, name string, module []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	before, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, nil, err
	}
	rt := &ownEngine{wazero.NewRuntimeWithConfig(ctx, config.WithCompilationCache(cache)), cache}
	compiled, err := rt.CompileModule(withoutCompiling(ctx), module)
	if touched := untouched(dir, path, name, before); touched != nil {
		// An engine that stopped may have removed a file it found to be of another version.
		if !errors.Is(err, errWouldCompile) {
			parentCompiles.Add(1)
		}
		err = errors.Join(err, touched)
	}
	if err != nil {
		return nil, nil, errors.Join(err, rt.Close(ctx))
	}
	return rt, compiled, nil
}

// untouched returns an error unless dir holds exactly the file it held before.
func untouched(dir, path, name string, before fs.FileInfo) error {
	files, err := filesIn(dir)
	if err != nil {
		return err
	}
	if name == "" && len(files) == 0 {
		return nil
	}
	if len(files) != 1 || files[0] != name {
		return errors.New("the engine wrote into the artifact's directory")
	}
	after, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return errors.New("the engine replaced the artifact")
	}
	return nil
}

// ownEngine is a runtime that closes its engine. The engine belongs to the cache, which would
// otherwise outlive the runtime.
type ownEngine struct {
	wazero.Runtime
	cache wazero.CompilationCache
}

func (r *ownEngine) Close(ctx context.Context) error { return r.CloseWithExitCode(ctx, 0) }

func (r *ownEngine) CloseWithExitCode(ctx context.Context, code uint32) error {
	return errors.Join(r.Runtime.CloseWithExitCode(ctx, code), r.cache.Close(ctx))
}

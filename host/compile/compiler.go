package compile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

// Digest names one compiled module. It is a function of everything that must keep two artifacts
// apart, and of nothing secret; usually [DigestOf] the module, or a hash of that and an
// organisation. Two different modules never share one.
type Digest [sha256.Size]byte

// DigestOf is the SHA-256 of a module's bytes.
func DigestOf(module []byte) Digest { return sha256.Sum256(module) }

// String is the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Source returns the bytes of a module whose artifact has to be made again. It is called from a
// worker goroutine of the [Compiler], and must honour the context.
type Source func(ctx context.Context, digest Digest) ([]byte, error)

// Options configures a [Compiler]. Dir, Key and Source are required.
type Options struct {
	// Dir is the data directory. Artifacts live in Dir/cache, private directories of children and
	// of loads in Dir/tmp; both are made with mode 0700. One process uses a Dir at a time.
	Dir string
	// Key authenticates artifacts, at least 32 bytes. It is copied.
	Key []byte
	// Limits gives compileCpu, compileWall, compileMemory and moduleBytes.
	Limits abi.Limits
	// Source finds modules for rebuilding.
	Source Source
	// Workers is how many children run at once; 0 means 1.
	Workers int
	// Queue is how many compilations may wait for a worker; 0 means 64. Beyond it Compile answers
	// OVERLOADED.
	Queue int
	// Logger receives refused artifacts and failed rebuilds; nil discards.
	Logger *slog.Logger
}

const (
	minKey       = 32
	defaultQueue = 64
	childPrefix  = "compile-"
	loadPrefix   = "load-"
)

// Compiler compiles in children, keeps what they made and hands it out. It is safe for concurrent
// use. Close it when done.
type Compiler struct {
	tmp         string
	cache       *cache
	bounds      bounds
	maxModule   int64
	source      Source
	log         *slog.Logger
	fingerprint string
	jail        jail.Report

	schedule
	stats struct{ children, rebuilds, missing, refused atomic.Uint64 }
}

// New sweeps what a crash left in Dir/tmp, starts one child to learn the engine's fingerprint, and
// starts the workers. ctx bounds the start only.
func New(ctx context.Context, o Options) (*Compiler, error) {
	if len(o.Key) < minKey || o.Source == nil || o.Dir == "" {
		return nil, abi.Errorf(abi.CodeInternal, "the compiler needs a directory, a source of modules and a key of %d bytes", minKey)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, notStarted(err)
	}
	c := &Compiler{
		tmp:       filepath.Join(dir, "tmp"),
		bounds:    boundsOf(&o.Limits),
		maxModule: o.Limits.Get(abi.LimitModuleBytes),
		source:    o.Source,
		log:       o.Logger,
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.tmp, 0o700); err != nil {
		return nil, notStarted(err)
	}
	err = sweep(c.tmp, func(name string) bool {
		return strings.HasPrefix(name, childPrefix) || strings.HasPrefix(name, loadPrefix)
	})
	if err != nil {
		return nil, notStarted(err)
	}
	a, _, err := run(ctx, c.tmp, c.bounds, kindFingerprint, nil, nil)
	if err != nil {
		return nil, err
	}
	c.fingerprint, c.jail = a.Fingerprint, a.Jail
	maxFile := int64(maxArtifact(int(c.maxModule))) + int64(sealOverhead)
	if c.cache, err = openCache(filepath.Join(dir, "cache"), bytes.Clone(o.Key), maxFile); err != nil {
		return nil, notStarted(err)
	}
	c.start(max(o.Workers, 1), queueSize(o.Queue), c.work)
	return c, nil
}

func queueSize(n int) int {
	if n <= 0 {
		return defaultQueue
	}
	return n
}

// Compile validates and compiles module in a child, keeps the artifact under digest and returns it.
// Calls for one digest at the same time share one child (PF-I3). It never answers from the cache:
// an upload takes as long when somebody else has the same bytes (S14).
//
// Codes: MODULE_INVALID (the engine's complaint about the module, escaped), COMPILE_LIMIT,
// COMPILE_FAILED, PAYLOAD_TOO_LARGE, OVERLOADED (the queue is full), IMAGE_NOT_READY (the machine
// left children too little of the processor, twice), DRAINING (closed), and CANCELED or
// DEADLINE_EXCEEDED from ctx. When the last caller that waits for a child has gone, it is killed.
func (c *Compiler) Compile(ctx context.Context, digest Digest, module []byte) (*Artifact, error) {
	return c.CompileRewritten(ctx, digest, nil, module)
}

// CompileRewritten is Compile for a module that was made of another one, which is validated first,
// completely, and then forgotten.
func (c *Compiler) CompileRewritten(ctx context.Context, digest Digest, original, module []byte) (*Artifact, error) {
	if int64(len(module)) > c.maxModule || int64(len(original)) > c.maxModule {
		return nil, c.tooLarge()
	}
	if err := ctx.Err(); err != nil {
		return nil, contextError(err)
	}
	a, err := c.do(ctx, digest, original, module)
	if err != nil {
		return nil, err
	}
	if a.module != sha256.Sum256(module) {
		return nil, abi.Errorf(abi.CodeInternal, "one digest was used for two modules")
	}
	return a, nil
}

func (c *Compiler) tooLarge() error {
	return abi.Errorf(abi.CodePayloadTooLarge, "the module is larger than the limit moduleBytes, %d bytes", c.maxModule)
}

// Load returns the artifact kept under digest after checking its MAC, digest and engine
// fingerprint. Anything else is removed, queued to be made again from Source, and answered with
// IMAGE_NOT_READY. Load never compiles and never waits for a child. After Close: DRAINING.
func (c *Compiler) Load(ctx context.Context, digest Digest) (*Artifact, error) {
	if err := ctx.Err(); err != nil {
		return nil, contextError(err)
	}
	a, err := c.cache.get(digest, c.fingerprint)
	if err == nil {
		a.owner = c
		return a, nil
	}
	switch {
	case errors.Is(err, os.ErrClosed):
		return nil, draining()
	case errors.Is(err, errMissing):
		c.stats.missing.Add(1)
	default:
		c.refused(digest, err)
	}
	c.rebuild(digest)
	return nil, abi.Errorf(abi.CodeImageNotReady, "the compiled form is being made again: %w", err).
		WithHint("try again in a few seconds")
}

// reject drops an artifact that verified and did not load.
func (c *Compiler) reject(digest Digest, why error) {
	c.refused(digest, errors.Join(why, c.cache.remove(digest)))
	c.rebuild(digest)
}

func (c *Compiler) refused(digest Digest, why error) {
	c.stats.refused.Add(1)
	c.log.Warn("compiled artifact refused", "digest", digest.String(), "why", why)
}

// Forget removes the artifact kept under digest. It is not an error when there is none.
func (c *Compiler) Forget(digest Digest) error {
	if err := c.cache.remove(digest); err != nil {
		return notKept(err)
	}
	return nil
}

// work is one job of a worker.
func (c *Compiler) work(ctx context.Context, digest Digest, original, module []byte, rebuild bool) (*Artifact, error) {
	if !rebuild {
		return c.make(ctx, digest, original, module)
	}
	module, err := c.source(ctx, digest)
	if err == nil && int64(len(module)) > c.maxModule {
		err = c.tooLarge()
	}
	var a *Artifact
	if err == nil {
		c.stats.rebuilds.Add(1)
		a, err = c.make(ctx, digest, nil, module)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Error("compiled artifact could not be made again", "digest", digest.String(), "why", err)
	}
	return a, err
}

// make runs a child and keeps its artifact.
func (c *Compiler) make(ctx context.Context, digest Digest, original, module []byte) (*Artifact, error) {
	c.stats.children.Add(1)
	answer, code, err := run(ctx, c.tmp, c.bounds, kindCompile, original, module)
	if err != nil {
		return nil, err
	}
	if answer.Fingerprint != c.fingerprint {
		return nil, childFailed(errors.New("the child has another engine fingerprint than the first one"))
	}
	a := &Artifact{
		digest: digest, module: sha256.Sum256(module), fingerprint: answer.Fingerprint,
		name: answer.Name, code: code, owner: c,
	}
	if err := c.cache.put(a); err != nil {
		return nil, notKept(err)
	}
	return a, nil
}

// Jail reports what confines the children on this machine, as the first one found.
func (c *Compiler) Jail() jail.Report { return c.jail }

// Stats counts what a [Compiler] did since New.
type Stats struct {
	Children uint64 // child processes started for a module
	Rebuilds uint64 // of these, for an artifact that was missing or refused
	Missing  uint64 // loads that found no file
	Refused  uint64 // loads that found a file which was not what it should be, or could not be read
}

// Stats returns the counters.
func (c *Compiler) Stats() Stats {
	return Stats{
		Children: c.stats.children.Load(), Rebuilds: c.stats.rebuilds.Load(),
		Missing: c.stats.missing.Load(), Refused: c.stats.refused.Load(),
	}
}

// Close kills running children, fails waiting calls with DRAINING, and waits for the workers.
// Artifacts that were handed out stay usable.
func (c *Compiler) Close() error {
	if !c.stop() {
		return nil
	}
	return c.cache.close()
}

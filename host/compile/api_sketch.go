package compile

import (
	"context"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

// RunIfChild must be the first statement of main, and of TestMain in test binaries that compile.
// In a process that a [Compiler] started it compiles and exits; elsewhere it returns at once.
func RunIfChild() {}

// Compiler compiles in children, keeps what they made and hands it out. It is safe for concurrent
// use. Close it when done.
type Compiler struct{}

// New sweeps what a crash left in Dir/tmp, starts one child to learn the engine's fingerprint, and
// starts the workers. ctx bounds the start only.
func New(ctx context.Context, o Options) (*Compiler, error) {
	return nil, abi.Errorf(abi.CodeNotReady, "the compiler is not there yet")
}

// Compile validates and compiles module in a child, keeps the artifact under digest and returns it.
// Calls for one digest at the same time share one child (PF-I3). It always runs a child, never
// answers from the cache: an upload takes as long when somebody else has the same bytes (S14).
//
// Codes: MODULE_INVALID (the engine's complaint about the module, escaped), COMPILE_LIMIT,
// COMPILE_FAILED, OVERLOADED (the queue is full), DRAINING (closed), and CANCELED or
// DEADLINE_EXCEEDED from ctx. When the last caller that waits for a child has gone, it is killed.
func (c *Compiler) Compile(ctx context.Context, digest Digest, module []byte) (*Artifact, error) {
	return nil, abi.Errorf(abi.CodeNotReady, "the compiler is not there yet")
}

// Load returns the artifact kept under digest after checking its MAC, digest and engine
// fingerprint. Anything else is removed, queued to be made again from Source, and answered with
// IMAGE_NOT_READY. Load never compiles and never waits for a child.
func (c *Compiler) Load(ctx context.Context, digest Digest) (*Artifact, error) {
	return nil, abi.Errorf(abi.CodeImageNotReady, "the compiler is not there yet")
}

// Forget removes the artifact kept under digest. It is not an error when there is none.
func (c *Compiler) Forget(digest Digest) error { return nil }

// Jail reports what confines the children on this machine, as the first one found.
func (c *Compiler) Jail() jail.Report { return nil }

// Stats returns counters since New.
func (c *Compiler) Stats() Stats { return Stats{} }

// Close kills running children, fails waiting calls with DRAINING, and waits for the workers.
func (c *Compiler) Close() error { return nil }

// Stats counts what a [Compiler] did.
type Stats struct {
	Children uint64 // child processes started for a module
	Rebuilds uint64 // of these, for an artifact that was missing or refused
	Missing  uint64 // loads that found no file
	Refused  uint64 // loads that found a file which was not what it should be
}

// Artifact is native code for one module, verified or fresh from a child. It is immutable.
type Artifact struct{}

// Open writes the artifact into a fresh private directory (0700) in the form the engine reads, and
// returns that directory. The caller calls release, once, when the engine has loaded it.
func (a *Artifact) Open(ctx context.Context) (dir string, release func(), err error) {
	return "", nil, abi.Errorf(abi.CodeImageNotReady, "the compiler is not there yet")
}

// LoadModule loads an artifact into a runtime of its own (S11), without compiling: if the engine
// does not find exactly the artifact's code for exactly these bytes, it is stopped before it
// generates any, the artifact is dropped and queued to be made again, and the answer is
// IMAGE_NOT_READY. config is [RuntimeConfig], without a compilation cache. The caller closes the
// runtime, which closes the compiled module and the engine with it.
func LoadModule(ctx context.Context, config wazero.RuntimeConfig, a *Artifact, module []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	return nil, nil, abi.Errorf(abi.CodeImageNotReady, "the compiler is not there yet")
}

// ParentCompiles counts loads of this process after which the engine had written or touched
// anything in the artifact's directory. It is 0, always; tests and a metric assert it (S14).
func ParentCompiles() uint64 { return 0 }

// Package host runs modules. It admits them, has them compiled outside this process, keeps
// some of them loaded, and runs each invocation in an instance of its own behind the boundary.
//
// It refuses to know who is calling and why that was allowed: it is handed an invocation with
// an authority. It compiles nothing itself, in no circumstance.
package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/memory"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Outcome is how an invocation ended.
type Outcome = boundary.Outcome

// Source returns an admitted biome by its digest, in hexadecimal. It is called when a module is loaded or has to be compiled again, must honour the context,
// and must be safe for concurrent use.
type Source func(ctx context.Context, digest string) (wasm.Original, error)

// Options configures a [Host]. Dir, Key and Source are required.
type Options struct {
	Dir    string     // data directory; compiled modules live below it
	Key    []byte     // authenticates compiled modules, at least 32 bytes; copied
	Limits abi.Limits // of uploads and of the compiler
	Source Source
	// Schema compiles one JSON Schema of a manifest and says what is wrong with it; nil
	// skips that check.
	Schema func(json.RawMessage) error
	// Memory is what modules that are kept loaded, and the instances that are kept of them, may take
	// together, in bytes; 0 is a quarter of what the machine has. A Go guest's code is about 12 MB.
	// Guests that run take what their limits allow on top of it.
	Memory int64
	// Pool lends the instances. Whoever made it closes it, after the host; nil is a pool of the
	// host's own, which has Memory for its budget and which the host closes.
	Pool engine.Pool
	Log  *slog.Logger // nil discards
}

// leastMemory is the least that Memory is when nothing is said.
const leastMemory = 256 << 20

// Host is safe for concurrent use. Close it once, after the last Run has returned.
type Host struct {
	limits    abi.Limits
	source    Source
	log       *slog.Logger
	inspector admission.Inspector
	compiler  *compile.Compiler
	engine    *engine.Engine
	own       *engine.Pooled // nil: the pool is another's
	images    *images
	trial     chan struct{} // holds one token: trials run one at a time
}

// New starts the compiler's workers. ctx bounds the start only.
func New(ctx context.Context, o Options) (*Host, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Memory <= 0 {
		o.Memory = max(memory.Installed()/4, leastMemory)
	}
	h := &Host{
		limits:    o.Limits,
		source:    o.Source,
		log:       o.Log,
		inspector: admission.Inspector{Limits: admission.UploadLimits(o.Limits), Schema: o.Schema},
		trial:     make(chan struct{}, 1),
	}
	var err error
	h.compiler, err = compile.New(ctx, compile.Options{
		Dir: o.Dir, Key: o.Key, Limits: metered(o.Limits), Logger: o.Log,
		Source: func(ctx context.Context, d compile.Digest) ([]byte, error) {
			p, err := h.admitted(ctx, d.String())
			if err != nil {
				return nil, err
			}
			return p.module, nil
		},
	})
	if err != nil {
		return nil, err
	}
	if o.Pool == nil {
		h.own = engine.NewPooled(engine.PoolOptions{Bytes: o.Memory, Log: o.Log})
		o.Pool = h.own
	}
	h.engine = engine.New(o.Pool)
	hold := func(string, int64) {}
	if budget, ok := o.Pool.(interface{ Hold(org string, bytes int64) }); ok {
		hold = budget.Hold
	}
	// A quarter at least is for instances: without them code that is loaded is of little use.
	h.images = newImages(o.Memory/4*3, h.load, hold)
	return h, nil
}

// Run runs one invocation to its end on the calling goroutine. Organisation, digest and
// export come from its authority. When the compiled form is missing or damaged the outcome is
// IMAGE_NOT_READY and no guest instruction ran.
//
// Cancelling ctx ends the guest; a cause that is an [abi.Error] (GRANT_REVOKED, DRAINING …)
// becomes the outcome's code.
func (h *Host) Run(ctx context.Context, inv *boundary.Invocation) Outcome {
	spec := inv.Authority().Spec()
	image, err := h.images.take(ctx, imageKey{spec.Org, spec.Digest})
	if err != nil {
		failed := abi.AsError(err)
		h.logFailure(ctx, inv, failed)
		return inv.Conclude(ctx, failed, 0)
	}
	defer image.leave()
	outcome := h.engine.Run(ctx, image.image(), inv)
	h.logFailure(ctx, inv, outcome.Cause)
	return outcome
}

// Invoke makes an invocation, runs it as Run does, and keeps nothing of it.
func (h *Host) Invoke(ctx context.Context, spec boundary.Spec) Outcome {
	inv := boundary.New(spec)
	outcome := h.Run(ctx, inv)
	inv.Free()
	return outcome
}

// logFailure keeps the private half of what went wrong: trap and trace, a panic of the host.
func (h *Host) logFailure(ctx context.Context, inv *boundary.Invocation, cause *abi.Error) {
	if cause == nil || cause.Cause == nil {
		return
	}
	level := slog.LevelInfo // the guest's own doing
	if cause.Code == abi.CodeInternal {
		level = slog.LevelError
	}
	spec := inv.Authority().Spec()
	h.log.LogAttrs(ctx, level, "invocation failed",
		slog.String("invocation", spec.Invocation), slog.String("digest", spec.Digest), slog.String("export", spec.Export),
		slog.String("code", string(cause.Code)), slog.String("cause", cause.Cause.Error()))
}

// Warm loads the compiled form of a biome for an organisation, so that its first invocation
// need not. It never compiles.
func (h *Host) Warm(ctx context.Context, org, digest string) error {
	image, err := h.images.take(ctx, imageKey{org, digest})
	if err != nil {
		return err
	}
	image.leave()
	return nil
}

// Room reports whether there is memory to load more modules without dropping others.
func (h *Host) Room() bool { return h.images.room() }

// Stats is what a host has loaded.
type Stats struct {
	Images     int   // modules, once for each organisation that uses them
	ImageBytes int64 // what they take
	Most       int64 // of ImageBytes, while guests run in no more than one of them
}

// Stats says what the host has loaded.
func (h *Host) Stats() Stats {
	return Stats{Images: len(*h.images.byKey.Load()), ImageBytes: h.images.bytes.Load(), Most: h.images.most}
}

// Forget drops what is loaded of a biome, in every organisation, and its compiled form.
// Running invocations finish first; the code is freed after the last of them.
func (h *Host) Forget(digest string) error {
	h.images.forget(digest)
	d, err := compileDigest(digest)
	if err != nil {
		return err
	}
	return h.compiler.Forget(d)
}

// Started counts invocations for which guest code was entered, since New.
func (h *Host) Started() int64 { return h.engine.Started() }

// Trials counts initialisers tried at admission, since New.
func (h *Host) Trials() int64 { return h.engine.Trials() }

// Close stops the compiler and drops all loaded images.
func (h *Host) Close() error {
	h.images.close()
	if h.own != nil {
		h.own.Close()
	}
	return h.compiler.Close()
}

// trialWall bounds the initialiser at admission. It is short: the trial runs in this process.
const trialWall = time.Second

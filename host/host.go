// Package host runs modules: it admits them, compiles them outside this process, and runs
// each invocation in an instance of its own behind [boundary.Call].
//
// It refuses to know who is calling and why that was allowed: it is handed an authority.
package host

import (
	"context"
	"log/slog"

	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Outcome is how an invocation ended.
type Outcome = boundary.Outcome

// Options configures a [Host].
type Options struct {
	// CacheDir holds compiled modules, 0700. CacheKey authenticates them and is 32 bytes.
	CacheDir string
	CacheKey []byte
	// MaxImages bounds the modules kept loaded, over all organisations; 0 is 64.
	MaxImages int
	Log       *slog.Logger // nil: discard
}

// Host is safe for concurrent use. Close it once, after the last Run returned.
type Host struct{}

// New opens the compile cache. It starts nothing.
func New(o Options) (*Host, error) { return nil, nil }

// Warm loads the compiled form of digest for org, so that the first invocation need not.
// It never compiles: a form that is not in the cache is IMAGE_NOT_READY.
func (h *Host) Warm(ctx context.Context, org, digest string) error { return nil }

// Run runs one invocation to its end on the calling goroutine. Organisation, digest and
// export come from the invocation's authority. When the compiled form is missing or damaged
// the outcome is IMAGE_NOT_READY and no guest instruction ran.
//
// Cancelling ctx ends the guest; a cause that is an *abi.Error (GRANT_REVOKED, DRAINING …)
// becomes the outcome's code.
func (h *Host) Run(ctx context.Context, inv *boundary.Invocation) Outcome { return Outcome{} }

// Forget drops the loaded images of digest in every organisation. Running invocations
// finish first; the code is freed after the last of them.
func (h *Host) Forget(digest string) {}

// Started counts invocations that executed a guest instruction, since New.
func (h *Host) Started() int64 { return 0 }

// Close drops all loaded images.
func (h *Host) Close(ctx context.Context) error { return nil }

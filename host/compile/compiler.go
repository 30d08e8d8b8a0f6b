package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/ecotone-dev/ecotone/abi"
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
	// of loads in Dir/tmp; both are made with mode 0700.
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
	// CodeOverloaded.
	Queue int
	// Logger receives refused artifacts and failed rebuilds; nil discards.
	Logger *slog.Logger
}

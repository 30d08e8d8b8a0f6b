package keyspace

import (
	"context"
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// First parts of the store's keys.
const (
	partMeta  = "kv-meta"  // label, version and size of a key; lists read these alone
	partValue = "kv-value" // bytes of a key
	partCount = "kv-count" // totals of a key space
	partFile  = "file"     // records of a workspace
)

// names of a key space within the store. The key follows the parts as it is, so that keys
// sort as they read; since no key begins with a control byte it cannot be taken for a part.
type names struct{ meta, value, count []byte }

func namesOf(spec *authority.Spec) (names, error) {
	if spec.Org == "" || spec.Space == "" || spec.Biome == "" {
		return names{}, abi.Errorf(abi.CodeNotFound, "the invocation has no key space")
	}
	return names{
		meta:  store.Key(partMeta, spec.Org, spec.Space, spec.Biome),
		value: store.Key(partValue, spec.Org, spec.Space, spec.Biome),
		count: store.Key(partCount, spec.Org, spec.Space, spec.Biome),
	}, nil
}

// under appends a key to the parts of a key space.
func under(space []byte, key string) []byte {
	return append(append(make([]byte, 0, len(space)+len(key)), space...), key...)
}

// checkKey refuses keys that are empty, longer than the limit, not UTF-8, or have controls
// or what reorders text that is shown.
func checkKey(key string, limits *abi.Limits) error {
	limit := limits.Get(abi.LimitKeyBytes)
	switch {
	case key == "":
		return abi.Errorf(abi.CodeKeyInvalid, "the key is empty")
	case int64(len(key)) > limit:
		return abi.Errorf(abi.CodeKeyInvalid, "the key is longer than %d bytes", limit)
	case !printable(key):
		return abi.Errorf(abi.CodeKeyInvalid, "%s is not a key", abi.Quote(key)).
			WithHint("keys are UTF-8 text without control characters")
	}
	return nil
}

func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return false
		}
	}
	return true
}

// storeError turns what the store says into a code; what a transaction's own function
// returned passes as it is.
func storeError(ctx context.Context, err error) error {
	var own *abi.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case ctx.Err() != nil:
		if errors.As(context.Cause(ctx), &own) {
			return own
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return abi.Errorf(abi.CodeDeadline, "the deadline passed while keys were used")
		}
		return abi.Errorf(abi.CodeCanceled, "the invocation was cancelled while keys were used")
	case errors.Is(err, store.ErrTooLarge):
		return abi.Errorf(abi.CodeValueTooLarge, "the value is larger than the store takes: %w", err)
	case errors.Is(err, store.ErrClosed):
		return abi.Errorf(abi.CodeNotReady, "the store is closed: %w", err)
	}
	return abi.Errorf(abi.CodeInternal, "the store failed: %w", err)
}

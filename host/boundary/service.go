package boundary

import (
	"context"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// Flow is an invocation's side of information flow. Services ask it about each object
// they touch, before a byte is delivered or changed; labels live with the objects.
type Flow interface {
	// Observe raises the invocation's label to the source's. Above the invocation's ceiling
	// it refuses with CLASSIFICATION_CEILING_EXCEEDED, and the service must answer exactly as
	// if the object were absent (S5).
	Observe(source abi.Classification) *abi.Error
	// Emit refuses with CLASSIFICATION_FLOW when the invocation's label is above the sink's.
	Emit(sink abi.Classification) *abi.Error
	// Label is the invocation's label now: what a newly made object is labelled.
	Label() abi.Classification
}

// Scope is what services see of the invocation that calls them. Flow is the invocation's own
// and is used on the calling goroutine, until the call returns.
type Scope struct {
	Authority *authority.Authority
	Flow      Flow
}

// Result is what a host call leaves in the result register.
type Result struct {
	Body []byte          // owned by the register from here on
	Meta json.RawMessage // nil is {}
	// Value is the call's return when it is not len(Body).
	Value    int64
	HasValue bool
	// Target is what the receipt line names; the service canonicalises it.
	Target string
	// Code is set when the service did its work and the call still ends in an errno, with
	// Body and Meta kept (an ambiguous edit, a failed child).
	Code abi.Code
}

// Files is the workspace of a session (host/files). Every path is checked lexically,
// against the authority's globs, and through a rooted handle; limits and versions are
// enforced inside. Implementations are safe for concurrent use.
type Files interface {
	Stat(ctx context.Context, s Scope, path string) (Result, error)
	Read(ctx context.Context, s Scope, path string, off int64, n int) (Result, error)
	List(ctx context.Context, s Scope, path, after string, limit int) (Result, error)
	Create(ctx context.Context, s Scope, path string, data []byte) (Result, error)
	Write(ctx context.Context, s Scope, path string, data []byte) (Result, error)
	Replace(ctx context.Context, s Scope, path, version string, data []byte) (Result, error)
	Edit(ctx context.Context, s Scope, path string, old, new []byte, all bool) (Result, error)
	Copy(ctx context.Context, s Scope, from, to string) (Result, error)
	Move(ctx context.Context, s Scope, from, to string) (Result, error)
	Remove(ctx context.Context, s Scope, path string) (Result, error)
	Mkdir(ctx context.Context, s Scope, path string) (Result, error)
	Grep(ctx context.Context, s Scope, pattern, glob string, limit int) (Result, error)
	Glob(ctx context.Context, s Scope, glob string, limit int) (Result, error)
}

// KV is the durable key space of one biome in one space of one organisation. A put is
// durable when it returns. Implementations are safe for concurrent use.
type KV interface {
	Get(ctx context.Context, s Scope, key string) (Result, error)
	Put(ctx context.Context, s Scope, key string, value []byte) (Result, error)
	Delete(ctx context.Context, s Scope, key string) (Result, error)
	List(ctx context.Context, s Scope, prefix, after string, limit int) (Result, error)
}

// FetchRequest is the request document of http_fetch.
type FetchRequest struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Secret  string            `json:"secret,omitempty"` // name of a secret the host puts in
}

// Fetcher sends guarded HTTP requests (host/network).
type Fetcher interface {
	Fetch(ctx context.Context, s Scope, req FetchRequest, body []byte) (Result, error)
}

// Signer uses secrets without showing them (host/vault).
type Signer interface {
	HMAC(ctx context.Context, s Scope, name string, message []byte) (Result, error)
}

// Invoker runs a child invocation. The parent's label is raised through s.Flow before
// anything of the child is delivered, failure included.
type Invoker interface {
	InvokeChild(ctx context.Context, s Scope, ref abi.CapabilityRef, input []byte) (Result, error)
}

// Querier answers audit_query for the authority's organisation.
type Querier interface {
	Query(ctx context.Context, s Scope, query json.RawMessage) (Result, error)
}

// Journal makes effects recorded before they happen (S8).
type Journal interface {
	// Started makes the invocation's intent durable. The boundary calls it once, before the
	// first call whose effect needs an intent; an error means that nothing may act.
	Started(ctx context.Context, a *authority.Authority) error
	// Announce makes one external effect durable before it acts; line is its number in the receipt.
	Announce(ctx context.Context, a *authority.Authority, line int, function, target string) error
	// Closed records how an announced effect ended. It need not be durable before the guest goes on.
	Closed(ctx context.Context, a *authority.Authority, line int, code abi.Code) error
}

// Services is everything outside the invocation that host functions use. A nil service
// makes its functions answer EUNAVAIL.
type Services struct {
	Files    Files
	KV       KV
	HTTP     Fetcher
	Signer   Signer
	Children Invoker
	Audit    Querier
	Journal  Journal
}

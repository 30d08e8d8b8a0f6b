// Package guesttest is a fake host for unit tests of biomes: a capability runs natively,
// against keys, files, children and origins that the test puts in, with the errors the ABI
// documents. It is strict where a host is strict (a file must be read before it is
// overwritten, nothing is allowed that was not put in) and knows nothing of grants,
// classification, prices and deadlines: those are a host's, and are tested with one.
//
// One host serves the whole process, so tests that use it do not run in parallel.
package guesttest

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/guest/internal/imports"
)

// Host is the world of the invocations of one test. Set its fields before a run; they are
// read and changed by the capability while it runs. Its methods are safe for concurrent use,
// its fields are not. The functions in it are called while a host call runs and must not use
// the host or the SDK.
type Host struct {
	// KV is the biome's key space.
	KV map[string][]byte
	// Children answer capability_invoke by ref. A ref that is not there is EDENIED. An error
	// that is an [guest.Errno] is answered as it is; any other becomes ECHILD, with a problem
	// document that has its text.
	Children map[string]func(input []byte) ([]byte, error)
	// HTTP answers http_fetch. An error that is an [guest.Errno] is answered as it is, any other
	// as EIO. Without it every request is EDENIED.
	HTTP func(guest.Request) (guest.Response, error)
	// Secrets are what secret_hmac and http_fetch may name.
	Secrets map[string][]byte
	// Audit answers audit_query with a value that has a JSON form. Without it: EDENIED.
	Audit func(guest.Query) (any, error)
	// Deny makes a host function, by its name in the ABI, answer this error instead of acting.
	Deny map[string]guest.Errno
	// Limits are the environment's. New sets the defaults.
	Limits abi.Limits
	// Clock is the host's clock; it stands still. New sets a fixed day.
	Clock time.Time
	// Rand is the source of random. New sets the real one.
	Rand io.Reader

	mu        sync.Mutex
	files     map[string]*node
	ledger    map[string]string // path → version this session knows
	versions  int
	input     []byte
	body      []byte
	meta      []byte
	outcome   Outcome
	randomBuf int64
	requests  int64
	children  int64
}

// Outcome is what an invocation left behind.
type Outcome struct {
	Return  int32          // of the export
	Output  []byte         // nil when there was none, or a failure dropped it
	Failure *guest.Failure // what the capability said of its failure
	Logs    []Record
	Calls   []string // the host functions called, in order
}

// OK reports whether a host would answer the caller with the output.
func (o *Outcome) OK() bool { return o.Return == 0 && o.Failure == nil && o.Output != nil }

// Code is the failure's code, or "".
func (o *Outcome) Code() string {
	if o.Failure == nil {
		return ""
	}
	return o.Failure.Code
}

// Decode decodes the output into v.
func (o *Outcome) Decode(v any) error { return json.Unmarshal(o.Output, v) }

// Record is one log record.
type Record struct {
	Level   guest.Level
	Message string
}

// New makes a host that is empty and refuses everything outside the invocation, and puts it
// in use until the test ends. It fails the test when another host is in use.
func New(t testing.TB) *Host {
	t.Helper()
	h, stop, ok := start()
	if !ok {
		t.Fatal("guesttest: another host is in use: tests with one do not run in parallel")
	}
	t.Cleanup(stop)
	return h
}

// Start is [New] for an example, which has no test. The host is in use until stop is called.
func Start() (h *Host, stop func()) {
	h, stop, ok := start()
	if !ok {
		panic("guesttest: another host is in use")
	}
	return h, stop
}

func start() (*Host, func(), bool) {
	h := &Host{
		KV:       map[string][]byte{},
		Children: map[string]func([]byte) ([]byte, error){},
		Secrets:  map[string][]byte{},
		Deny:     map[string]guest.Errno{},
		Limits:   abi.DefaultLimits(),
		Clock:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Rand:     rand.Reader,
		files:    map[string]*node{".": {dir: true}},
		ledger:   map[string]string{},
	}
	stop, ok := imports.Use(boundary{h})
	return h, stop, ok
}

// Run invokes a capability's export with the given input: a string or []byte is taken as the
// JSON text it is, anything else by its JSON form. Keys, files and what the session has read
// stay for the next run; output, failure, logs and budgets do not. Exports call [guest.Handle];
// so may a test, with the function behind one.
func (h *Host) Run(export func() int32, input any) *Outcome {
	var text []byte
	switch v := input.(type) {
	case string:
		text = []byte(v)
	case []byte:
		text = v
	default:
		b, err := json.Marshal(v)
		if err != nil {
			panic("guesttest: the input has no JSON form: " + err.Error())
		}
		text = b
	}
	h.mu.Lock()
	h.input, h.body, h.meta, h.outcome = text, nil, nil, Outcome{}
	h.randomBuf, h.requests, h.children = 0, 0, 0
	h.mu.Unlock()

	result := export()

	h.mu.Lock()
	defer h.mu.Unlock()
	h.outcome.Return = result
	out := h.outcome
	if out.Failure != nil {
		out.Output = nil
	}
	return &out
}

// PutFile writes a file from outside the session: what the session had read is now out of
// date.
func (h *Host) PutFile(path, data string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(path, []byte(data))
}

// RemoveFile removes a file from outside the session.
func (h *Host) RemoveFile(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, path)
}

// File returns what a file holds, and whether it is there.
func (h *Host) File(path string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.files[path]
	if n == nil || n.dir {
		return "", false
	}
	return string(n.data), true
}

// NewSession forgets what the session has read.
func (h *Host) NewSession() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.ledger)
}

// boundary is the host as the SDK sees it, apart from Host so that a test does not.
type boundary struct{ h *Host }

var _ imports.Host = boundary{}

// call begins one host call: it counts, and answers what Deny says. The lock is held until
// done is called.
func (b boundary) call(name string) (done func(), refused int64) {
	b.h.mu.Lock()
	o := &b.h.outcome
	o.Calls = append(o.Calls, name)
	if int64(len(o.Calls)) > b.h.Limits.Get(abi.LimitHostCalls) {
		return b.h.mu.Unlock, fail(guest.EQUOTA)
	}
	if e := b.h.Deny[name]; e != 0 {
		return b.h.mu.Unlock, fail(e)
	}
	return b.h.mu.Unlock, 0
}

// fills is [boundary.call] for functions that fill the result register: a failed one leaves
// it empty.
func (b boundary) fills(name string) (done func(), refused int64) {
	done, refused = b.call(name)
	b.h.body, b.h.meta = nil, nil
	return done, refused
}

func fail(e guest.Errno) int64 { return -int64(e) }

// leave puts a result into the register.
func (b boundary) leave(body []byte, meta any) int64 {
	b.h.body = slices.Clone(body)
	if meta != nil {
		b.h.meta = mustJSON(meta)
	}
	return int64(len(body))
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("guesttest: no JSON form: " + err.Error())
	}
	return b
}

// page cuts a sorted list to limit entries; 0 and too many mean what a host lists at once.
func page[T any](all []T, limit int) (part []T, more bool) {
	const most = 1000
	if limit <= 0 || limit > most {
		limit = most
	}
	if len(all) > limit {
		return all[:limit], true
	}
	if all == nil {
		all = []T{} // an empty list is [] in JSON, not null
	}
	return all, false
}

type moreMeta struct {
	More bool `json:"more"`
}

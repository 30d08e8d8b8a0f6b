// Package call turns what a host function returned into Go values and errors.
//
// Results of variable length wait in one register of the invocation until the next call that
// fills it. A goroutine may be parked between a call and the reading of its result, so both
// happen under one lock.
package call

import (
	"sync"

	"github.com/ecotone-dev/ecotone/abi/errno"
	"github.com/ecotone-dev/ecotone/guest/internal/imports"
)

var register sync.Mutex

// refusing is how many are warming; guarded by register.
var refusing int

// Refuse has every call answered with EDENIED, and the host not asked, until end is called: an
// initialiser that asks the host is ended by it.
func Refuse() (end func()) {
	step := func(n int) {
		register.Lock()
		defer register.Unlock()
		refusing += n
	}
	step(1)
	return func() { step(-1) }
}

// Result is what one host call left behind.
type Result struct {
	Value int64  // what it returned
	Body  []byte // the result register's body, for [Body] and [Both]
	Meta  []byte // the document that describes it, for [Meta] and [Both]
}

// Do makes a call whose result is its value alone.
func Do(f func() int64) (int64, error) {
	register.Lock()
	defer register.Unlock()
	if refusing > 0 {
		return -int64(errno.EDENIED), errno.EDENIED
	}
	n := f()
	return n, failure(n)
}

// Body makes a call and takes the body of its result.
func Body(f func() int64) (Result, error) { return take(f, true, false) }

// Meta makes a call and takes the document that describes its result.
func Meta(f func() int64) (Result, error) { return take(f, false, true) }

// Both makes a call and takes body and description.
func Both(f func() int64) (Result, error) { return take(f, true, true) }

func take(f func() int64, body, meta bool) (r Result, err error) {
	register.Lock()
	defer register.Unlock()
	if refusing > 0 {
		return r, errno.EDENIED
	}
	r.Value = f()
	failed := failure(r.Value)
	if failed != nil && failed != errno.ECHILD && failed != errno.EAMBIGUOUS {
		return r, failed // no other error leaves a document behind
	}
	if body && r.Value != 0 {
		r.Body, err = all(imports.ResultRead, int(max(r.Value, 0)))
	}
	if meta && err == nil {
		r.Meta, err = all(imports.ResultMeta, 256)
	}
	if failed != nil {
		return r, failed
	}
	return r, err
}

// all reads a document to its end. want is how long it probably is; one byte more notices
// the end without another call.
func all(read func([]byte, int) int64, want int) ([]byte, error) {
	buf := make([]byte, want+1)
	for off := 0; ; {
		n := read(buf[off:], off)
		if err := failure(n); err != nil {
			return nil, err
		}
		if off += int(n); off < len(buf) {
			// Fewer bytes than asked for are the last.
			return buf[:off:off], nil
		}
		buf = append(buf, make([]byte, len(buf))...)
	}
}

func failure(n int64) error {
	if n < 0 {
		return errno.Errno(-n)
	}
	return nil
}

package crashtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// origin is a server that guests call. It writes each request down before anything else.
type origin struct {
	*httptest.Server

	mu   sync.Mutex
	seen map[string]int // by the id in the path
	n    int
	then func(n int, id string) // called with the number of the request, before the answer
}

func newOrigin(t testing.TB) *origin {
	o := &origin{seen: map[string]int{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		id := strings.TrimPrefix(r.URL.Path, "/e/")
		o.seen[id]++
		o.n++
		n, then := o.n, o.then
		o.mu.Unlock()
		if then != nil {
			then(n, id)
		}
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(o.Close)
	return o
}

// on sets what happens inside the handler and counts from one again.
func (o *origin) on(then func(n int, id string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n, o.then = 0, then
}

func (o *origin) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// all copies what was seen.
func (o *origin) all() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[string]int, len(o.seen))
	for id, n := range o.seen {
		out[id] = n
	}
	return out
}

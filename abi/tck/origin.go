package tck

import (
	"io"
	"net/http"
	"sync"
)

// originURL stands for the origin's URL in a script.
const originURL = "http://origin.example"

// Origin is the other side of http_fetch. The host's tests serve it and set URL before a case is
// checked. It answers /echo with the method and the body, takes the connection away at /broken, and
// does not answer at /silent until the caller is gone.
type Origin struct {
	URL string // without a slash at the end

	mu      sync.Mutex
	waiting chan struct{}
}

// reached is closed by the next request to /silent.
func (o *Origin) reached() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = make(chan struct{})
	return o.waiting
}

func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, r.Method+" ")
		_, _ = io.Copy(w, r.Body)
	case "/broken":
		panic(http.ErrAbortHandler) // net/http closes the connection and says nothing
	case "/silent":
		o.mu.Lock()
		if o.waiting != nil {
			close(o.waiting)
			o.waiting = nil
		}
		o.mu.Unlock()
		<-r.Context().Done()
	default:
		http.NotFound(w, r)
	}
}

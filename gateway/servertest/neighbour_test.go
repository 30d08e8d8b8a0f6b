package servertest_test

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// neighbourly is another organisation on the same gateway, whose invocations must go well whatever
// the first one's do.
type neighbourly struct{ s *servertest.Session }

func neighbour(t testing.TB, g *servertest.Gateway) *neighbourly {
	t.Helper()
	g.Control("POST", "/v1/orgs", map[string]string{"id": "next-door"}).Want(201)
	const ref = "test:decent.do@1"
	g.Control("POST", "/v1/biomes?org=next-door", w.Echo(w.Manifest("decent", w.Provide(ref, "run", 1))), "Content-Type", "application/wasm").Want(201)
	g.Control("POST", "/v1/grants?org=next-door", map[string]any{
		"subject": "user:bob", "capability": ref, "environment": "environment:sandbox",
	}).Want(201)
	var opened struct {
		Token string
		Of    struct{ ID string }
	}
	g.Control("POST", "/v1/sessions?org=next-door", map[string]any{"subject": "user:bob", "environment": "environment:sandbox"}).Want(201).JSON(&opened)
	return &neighbourly{&servertest.Session{G: g, ID: opened.Of.ID, Token: opened.Token}}
}

// meanwhile invokes without end, and collects garbage without end, until the returned function is
// called. That fails the test unless every invocation went well, and unless there was one, and one
// whole collection, that began and ended in between.
func (n *neighbourly) meanwhile(t *testing.T) (stop func()) {
	t.Helper()
	quit := make(chan struct{})
	var calls, collections int
	var bad error
	var wg sync.WaitGroup
	until := func(f func()) {
		wg.Go(func() {
			for {
				f()
				select {
				case <-quit:
					return
				default:
				}
			}
		})
	}
	until(func() {
		calls++
		in := fmt.Appendf(nil, `{"n":%d}`, calls)
		if r := n.s.Invoke("test:decent.do@1", in); r.Status != 200 || !bytes.Equal(r.Body, in) {
			bad = fmt.Errorf("invocation %d of another organisation: %d %.200s", calls, r.Status, r.Body)
		}
	})
	until(func() {
		runtime.GC() // returns when a collection is complete
		collections++
		time.Sleep(100 * time.Millisecond)
	})
	return func() {
		t.Helper()
		close(quit)
		wg.Wait()
		if bad != nil || calls == 0 || collections == 0 {
			t.Errorf("%d invocations, %d collections, %v", calls, collections, bad)
		}
	}
}

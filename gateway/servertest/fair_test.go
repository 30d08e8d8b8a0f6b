package servertest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// An organisation that takes all it may leaves places to run and to wait for the others, is told so in
// words of its own, and its guests, which never stop computing, keep nobody from a processor.
// Promise 5, PF-D9.
func TestOneOrganisationDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	g, s := spinning(t, func(o *server.Options) {
		for name, n := range map[string]int64{"running": 8, "waiting": 8} {
			if err := o.Limits.Set(name, n); err != nil {
				t.Fatal(err)
			}
		}
		o.Weights = map[string]int64{"next-door": 1} // the least there is
	})
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 600_000})
	next := neighbour(t, g)
	const callers = 16
	answers := make(chan servertest.Response, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { answers <- s.Invoke("test:busy.spin@1", map[string]int{}) })
	}
	var refused int
	for refused < callers-12 { // six run and six wait: three quarters of each
		select {
		case r := <-answers:
			if refused++; r.Header.Get("Retry-After") == "" {
				t.Errorf("refused, and not told to try again: %v", r.Header)
			}
			r.Refused(abi.CodeQuotaExceeded)
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d are refused", refused, callers-12)
		}
	}
	stop := next.meanwhile(t)
	for n := range 20 {
		in := fmt.Sprintf(`{"mine":%d}`, n)
		if r := next.s.Invoke("test:decent.do@1", []byte(in)); r.Status != 200 || string(r.Body) != in {
			t.Errorf("%d %.200s", r.Status, r.Body)
		}
	}
	stop()
	g.Control("DELETE", "/v1/sessions/"+s.ID, nil).Want(200) // those that run see it at a slice, those that wait when they would begin
	for n := range callers - refused {
		select {
		case r := <-answers:
			r.Refused(abi.CodeGrantRevoked)
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d have ended", n, callers-refused)
		}
	}
	wg.Wait()
}

package percore_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/host/internal/percore"
)

func TestSlotsAreInRange(t *testing.T) {
	for n := 1; n < 5; n++ {
		for range 100 {
			if s := percore.Slot(n); s < 0 || s >= n {
				t.Fatalf("slot %d of %d", s, n)
			}
		}
	}
}

// Whatever comes and goes meanwhile: nobody is let in after the last one was told to close, and
// somebody is told.
func TestLastUserIsTold(t *testing.T) {
	for range 500 {
		u := percore.NewUsers()
		var open, told atomic.Bool
		open.Store(true)
		shut := func() {
			told.Store(true)
			open.Store(false)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					slot, ok := u.Enter()
					if ok && !open.Load() {
						t.Error("let in after it was closed")
					}
					runtime.Gosched()
					if ok && !open.Load() {
						t.Error("closed while it was used")
					}
					if u.Leave(slot) {
						shut()
					}
				}
			})
		}
		wg.Go(func() {
			runtime.Gosched()
			if u.Close() {
				shut()
			}
		})
		wg.Wait()
		if !told.Load() || u.Any() {
			t.Fatal("nobody was told")
		}
		if slot, ok := u.Enter(); ok || !u.Leave(slot) {
			t.Fatal("let in")
		}
	}
}

func BenchmarkUsers(b *testing.B) {
	u := percore.NewUsers()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			slot, _ := u.Enter()
			u.Leave(slot)
		}
	})
}

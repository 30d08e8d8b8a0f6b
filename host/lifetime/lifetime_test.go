package lifetime

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var errWhy = errors.New("why")

// A Context is what the standard library's context of the same parent and deadline is, whoever looks at it
// when: property over every order of what can happen to one.
func TestIsAContext(t *testing.T) {
	type key struct{}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 8).Draw(rt, "steps")
		endless := rapid.Bool().Draw(rt, "the parent cannot end")
		seconds := rapid.IntRange(-1, 5).Draw(rt, "deadline")
		synctest.Test(t, func(t *testing.T) {
			parent, endParent := context.WithCancelCause(context.WithValue(context.Background(), key{}, "v"))
			defer endParent(nil)
			if endless {
				parent = context.WithValue(context.Background(), key{}, "v")
			}
			deadline := time.Now().Add(time.Duration(seconds) * time.Second)
			timed, stop := context.WithDeadline(parent, deadline)
			defer stop()
			want, cancel := context.WithCancelCause(timed)
			defer cancel(nil)
			got := Begin(parent, deadline)
			defer got.Over()
			var below context.Context // made of it on the way
			for _, step := range steps {
				switch step {
				case 0:
					time.Sleep(time.Second)
				case 1:
					cancel(errWhy)
					got.Cancel(errWhy)
				case 2:
					endParent(errors.New("the parent's"))
				case 3: // its invocation has ended; why it ends does not matter any more
					got.Over()
					if got.Err() == nil || below != nil && below.Err() == nil {
						t.Fatal("it goes on after its invocation")
					}
					return
				case 4:
					got.Done()
				case 5:
					if below == nil {
						var end context.CancelFunc
						below, end = context.WithCancel(context.WithValue(got, key{}, "w"))
						defer end()
					}
				}
				synctest.Wait()
				for _, c := range []context.Context{got, below} {
					if c == nil {
						continue
					}
					if c.Err() != want.Err() || want.Err() != nil && !errors.Is(context.Cause(c), context.Cause(want)) && context.Cause(c).Error() != context.Cause(want).Error() {
						t.Fatalf("after step %d: %v because %v; expected %v because %v", step, c.Err(), context.Cause(c), want.Err(), context.Cause(want))
					}
				}
				if d, ok := got.Deadline(); !ok || !d.Equal(deadline) {
					t.Fatalf("deadline %v", d)
				}
				if got.Value(key{}) != "v" || got.Value("another") != nil {
					t.Fatal("the parent's values are not its own")
				}
				if step == 6 {
					select {
					case <-got.Done():
						if want.Err() == nil {
							t.Fatal("it ended too early")
						}
					default:
						if want.Err() != nil {
							t.Fatal("its end is not shown")
						}
					}
				}
			}
		})
	})
}

// What nobody waits for costs one allocation and leaves no timer.
func TestCosts(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() {
		l := Begin(context.Background(), deadline)
		if l.Err() != nil {
			t.Fatal("it is over")
		}
		l.Over()
		if !errors.Is(l.Err(), context.Canceled) {
			t.Fatal("it goes on")
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// Whoever sees the end sees why, though the parent has not told this child yet (S18: a revocation is told as one).
func TestTheCauseComesWithTheEnd(t *testing.T) {
	for range 200 {
		parent := Begin(context.Background(), time.Now().Add(time.Hour))
		for range 300 { // telling them takes the parent a while
			_, end := context.WithCancel(parent)
			defer end()
		}
		c := Begin(parent, time.Now().Add(time.Hour))
		c.Done()
		go parent.Cancel(errWhy)
		for c.Err() == nil {
			runtime.Gosched()
		}
		if cause := context.Cause(c); !errors.Is(cause, errWhy) {
			t.Fatalf("it ended because %v", cause)
		}
		c.Over()
		parent.Over()
	}
}

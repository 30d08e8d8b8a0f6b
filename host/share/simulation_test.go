package share

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// world is a machine with a virtual clock: a guest that holds a token burns a slice of fuel in as
// many ticks. One goroutine plays all turns, so that a run is the same every time.
type world struct {
	t      *rapid.T
	s      *Scheduler
	tokens int
	guests []*guest
	now    int64
}

// guest is a turn that never has enough, or that thinks between its slices.
type guest struct {
	turn  Turn
	org   *Org
	think int64 // between slices, without a token; 0: it always wants more
	step  func() int64

	burns int64 // fuel of the slice that runs
	until int64 // end of the slice, or of the thought
	state state
}

type state int

const (
	thinks state = iota
	waits
	runs
)

// usage is what an organisation burnt.
type usage map[*Org]int64

func newWorld(t *rapid.T, tokens int, weights ...int64) (*world, []*Org) {
	o := Options{Tokens: tokens, Weights: map[string]int64{}}
	for i, w := range weights {
		o.Weights[fmt.Sprint("org", i)] = w
	}
	w := &world{t: t, s: New(o), tokens: tokens}
	orgs := make([]*Org, len(weights))
	for i := range orgs {
		orgs[i] = w.s.Org(fmt.Sprint("org", i))
	}
	return w, orgs
}

func (w *world) add(org *Org, think int64, step func() int64) *guest {
	g := &guest{org: org, think: think, step: step, until: w.now}
	g.turn.Begin(org)
	w.guests = append(w.guests, g)
	return g
}

// play runs the world until an amount of fuel was burnt and tells how much each organisation did.
// each is called after every event.
func (w *world) play(fuel int64, each func(usage)) usage {
	used := usage{}
	for burnt := int64(0); burnt < fuel; {
		g := w.next()
		w.now = max(w.now, g.until)
		if g.state == runs {
			g.turn.Spend(g.burns)
			used[g.org] += g.burns
			burnt += g.burns
			if g.think > 0 {
				g.turn.Leave()
				g.state, g.until = thinks, w.now+g.think
				w.settle()
				each(used)
				continue
			}
		}
		if g.turn.Claim() {
			g.state = waits
		} else {
			w.run(g)
		}
		w.settle()
		each(used)
	}
	return used
}

// next is the guest to whom something happens next.
func (w *world) next() *guest {
	var best *guest
	for _, g := range w.guests {
		if g.state != waits && (best == nil || g.until < best.until) {
			best = g
		}
	}
	if best == nil {
		w.t.Fatal("every turn waits and none has a token")
	}
	return best
}

func (w *world) run(g *guest) {
	g.state, g.burns = runs, g.step()
	g.until = w.now + g.burns
}

// settle gives the tokens that were handed over to their new holders, and holds the scheduler to
// what must be true at any time.
func (w *world) settle() {
	running, waiting := 0, 0
	for _, g := range w.guests {
		if g.state == waits {
			select {
			case <-g.turn.ready:
				g.turn.hold()
				w.run(g)
			default:
				waiting++
			}
		}
		if g.state == runs {
			running++
			if !g.turn.Held() {
				w.t.Fatal("a guest computes without a token")
			}
		}
	}
	word := w.s.word.Load()
	if running > w.tokens || running+int(free(word)) != w.tokens {
		w.t.Fatalf("%d run and %d tokens are free, of %d", running, free(word), w.tokens)
	}
	if waiting > 0 && running < w.tokens {
		w.t.Fatalf("%d wait while %d of %d tokens are used", waiting, running, w.tokens)
	}
	if w.waitingSeen() != waiting {
		w.t.Fatalf("%d wait, the scheduler knows of %d", waiting, w.waitingSeen())
	}
}

func (w *world) waitingSeen() int { return int(waiting(w.s.word.Load())) }

// steps draws how long a guest's slices are: all the same, or as it comes, never above a slice.
func steps(t *rapid.T) func() int64 {
	most := rapid.Int64Range(Slice/8, Slice).Draw(t, "slice")
	if rapid.Bool().Draw(t, "even") {
		return func() int64 { return most }
	}
	parts, n := rapid.SliceOfN(rapid.Int64Range(most/16, most), 1, 7).Draw(t, "slices"), 0
	return func() int64 { n++; return parts[n%len(parts)] }
}

var weights = rapid.OneOf(rapid.Just(int64(DefaultWeight)), rapid.Int64Range(10, 1000))

// distance is how far two organisations are from having what their weights give them.
func distance(used usage, a, b *Org) (apart, unit float64) {
	wa, wb := float64(a.weight), float64(b.weight)
	apart = float64(used[a])/wa - float64(used[b])/wb
	return max(apart, -apart), Slice/wa + Slice/wb
}

// Organisations that always want more than there is burn fuel in proportion to their weights, at
// any time and to within a few slices, whatever the number of their turns and the length of their
// slices; and no token is idle while one of them waits. Promises 3 and 5 of sharing.
func TestSharesFollowWeights(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.IntRange(1, 4).Draw(rt, "tokens")
		w, orgs := newWorld(rt, tokens, rapid.SliceOfN(weights, 2, 5).Draw(rt, "weights")...)
		for _, o := range orgs {
			for range tokens + rapid.IntRange(0, 8).Draw(rt, "turns") { // enough to use every token alone
				w.add(o, 0, steps(rt))
			}
		}
		w.play(150*Slice, func(used usage) {
			for i, a := range orgs {
				for _, b := range orgs[:i] {
					if apart, unit := distance(used, a, b); apart > float64(tokens+2)*unit {
						rt.Fatalf("burnt %d and %d, of weights %d and %d", used[a], used[b], a.weight, b.weight)
					}
				}
			}
		})
	})
}

// Turns of one organisation go round: none of them runs twice while another waits.
func TestTurnsOfOneGoRound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, orgs := newWorld(rt, 1, DefaultWeight)
		slices := map[int]int{}
		for n := range rapid.IntRange(1, 8).Draw(rt, "turns") {
			w.add(orgs[0], 0, func() int64 { slices[n]++; return Slice })
		}
		w.play(100*Slice, func(usage) {
			least, most := slices[0], slices[0]
			for n := range w.guests {
				least, most = min(least, slices[n]), max(most, slices[n])
			}
			if most-least > 1 {
				rt.Fatalf("the one has run %d slices, the other %d", most, least)
			}
		})
	})
}

// Whoever wants to run runs again after a bounded amount of the others' fuel, whatever the others
// do: how many turns they have, how long they think, how much the host charges them.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.IntRange(1, 4).Draw(rt, "tokens")
		w, orgs := newWorld(rt, tokens, rapid.SliceOfN(weights, 2, 5).Draw(rt, "weights")...)
		me := orgs[0]
		for range rapid.IntRange(1, 3).Draw(rt, "mine") {
			w.add(me, 0, steps(rt))
		}
		bound := float64(tokens) * Slice
		for _, o := range orgs[1:] {
			bound += Slice * float64(tokens+3) * (1 + float64(o.weight)/float64(me.weight))
			for range rapid.IntRange(1, 12).Draw(rt, "turns") {
				w.add(o, rapid.SampledFrom([]int64{0, 0, 1, Slice / 3, 40 * Slice}).Draw(rt, "think"), steps(rt))
			}
		}
		var mine, since int64
		w.play(150*Slice, func(used usage) {
			var all int64
			for _, n := range used {
				all += n
			}
			if used[me] != mine {
				mine, since = used[me], all
			}
			if others := float64(all - since); others > bound {
				rt.Fatalf("the others burnt %.1f slices meanwhile, the bound is %.1f", others/Slice, bound/Slice)
			}
		})
	})
}

// Who was away has saved nothing: whatever the others burnt meanwhile, they run again soon after
// it is back, and who burnt much while nobody wanted it does not pay for it now.
func TestNobodySaves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.IntRange(1, 4).Draw(rt, "tokens")
		w, orgs := newWorld(rt, tokens, weights.Draw(rt, "stays"), weights.Draw(rt, "comes"))
		stays, comes := orgs[0], orgs[1]
		if rapid.Bool().Draw(rt, "was there") {
			w.add(comes, 0, steps(rt))
			w.play(20*Slice, func(usage) {})
			for _, g := range w.guests {
				g.turn.Leave()
			}
			w.guests = nil
		}
		for range rapid.IntRange(1, tokens).Draw(rt, "alone") { // nobody ever waits
			w.add(stays, rapid.SampledFrom([]int64{0, 1}).Draw(rt, "think"), steps(rt))
		}
		w.play(rapid.Int64Range(1, 2000).Draw(rt, "long")*Slice, func(usage) {})
		for range tokens + 3 {
			w.add(stays, 0, steps(rt))
			w.add(comes, 0, steps(rt))
		}
		w.play(150*Slice, func(used usage) {
			if apart, unit := distance(used, stays, comes); apart > float64(tokens+3)*unit {
				rt.Fatalf("burnt %.1f and %.1f slices, of weights %d and %d", float64(used[stays])/Slice, float64(used[comes])/Slice, stays.weight, comes.weight)
			}
		})
	})
}

// What the host burns for an organisation is paid for like what its guests burn.
func TestDebitsCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, orgs := newWorld(rt, 1, DefaultWeight, DefaultWeight)
		per := rapid.Int64Range(1, 10).Draw(rt, "debit") * Slice
		w.add(orgs[0], 0, func() int64 { orgs[0].Debit(per); return Slice })
		w.add(orgs[1], 0, func() int64 { return Slice })
		used := w.play(300*Slice, func(usage) {})
		paid := used[orgs[0]] * (1 + per/Slice)
		if gap := paid - used[orgs[1]]; gap > 3*(per+Slice) || gap < -3*(per+Slice) {
			rt.Fatalf("with debits %d slices, without %d", paid/Slice, used[orgs[1]]/Slice)
		}
	})
}

// Virtual time may wrap: only differences count.
func TestVirtualTimeWraps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, orgs := newWorld(rt, 2, 100, 300)
		begin := int64(1<<63-1) - rapid.Int64Range(0, 100*Slice).Draw(rt, "left")
		w.s.clock.Store(begin)
		orgs[0].at.Store(begin)
		for range 4 {
			w.add(orgs[0], 0, steps(rt))
			w.add(orgs[1], 0, steps(rt)) // was never there, and is a whole turn behind
		}
		used := w.play(400*Slice, func(usage) {})
		if apart, unit := distance(used, orgs[0], orgs[1]); apart > 5*unit {
			rt.Fatalf("burnt %d and %d slices", used[orgs[0]]/Slice, used[orgs[1]]/Slice)
		}
	})
}

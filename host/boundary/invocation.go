package boundary

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/share"
)

// Spec is what an invocation is made from.
type Spec struct {
	Authority *authority.Authority
	Input     []byte // the guest's to read; not changed and not kept past the invocation
	Services  Services
	Now       func() time.Time // nil: time.Now
	Random    io.Reader        // nil: crypto/rand (PF-F17)
	Log       *slog.Logger     // for faults of the host; nil discards
	// Parent is the invocation that waits for this one, and whose budgets it spends too: by making
	// children nobody gets more than they have. Nil for a caller's own. See [From].
	Parent *Invocation
	// Work is fuel for what was done for the invocation before it was made; it is the first that is
	// used, as far as there is any.
	Work int64
	// Share pays for the processor: the guest waits for its turn, and in its parent's if it has one.
	// Nil: it computes whenever it likes.
	Share *share.Org
	// Witness is told what ends the invocation; nil: nobody is.
	Witness Witness
}

// Witness learns, on the guest's goroutine, why a guest must not run on, as soon as it is known
// there. It is told once, and not of a guest that ends by itself. It must not wait.
type Witness interface{ Over(why *abi.Error) }

// Phase says what a guest may do now. The zero value lets it do nothing.
type Phase uint8

const (
	PhaseWaiting    Phase = iota // no guest yet
	PhaseInitialize              // _initialize runs: WASI answers, no host function does
	PhaseRun                     // the capability runs
	PhaseEnded                   // the outcome is made
)

// Invocation is the state of one running invocation. It belongs to the goroutine that runs
// the guest: nothing in it is safe for concurrent use. Cancelling goes through the context,
// never through the invocation (S1).
type Invocation struct {
	authority *authority.Authority
	limits    *abi.Limits
	services  Services
	input     []byte
	clock     func() time.Time
	wall      bool // the clock is the one that deadlines are of
	random    io.Reader
	log       *slog.Logger
	start     time.Time

	phase    Phase
	asked    []string   // see Asked
	over     *abi.Error // why the guest must not run on; set once
	left     bool       // over by an exit that is a success
	exited   bool       // over by an exit, and nothing else
	label    abi.Classification
	withheld int64 // objects above the ceiling so far

	result   Result // the result register
	output   []byte // nil: none
	tooLarge bool   // the last output was over its limit
	guest    *GuestError
	logs     guestLog
	gauge    Gauge // of the guest that runs; nil: none
	tie      Tie   // of the guest's goroutine to its thread; nil: none
	slice    int64 // of fuel
	slices   int64 // handed to the guest that runs
	counted  int64 // of the fuel used, what the share was told of
	worked   int64 // of the fuel used, what was used before the invocation
	turn     *share.Turn
	payer    *share.Org // see Share
	ownTurn  share.Turn
	witness  Witness
	trial    bool
	used     budgets
	below    budgets     // what its children used, and theirs
	parent   *Invocation // nil: none. Its guest waits, so that it is this goroutine's too
	intent   bool        // the durable intent is recorded
	served   bool        // somebody outside was given the invocation, or its context
	call     call
	visit    Visit
	keepers  [numSlots]Keeper // what a face keeps; nil: nothing
	refused  *abi.Error       // see Refused
	copies   copies
	piece    *[512]byte // of random bytes, on their way; nil until there are any
	lines    []Line
	unlisted Counts
	run      runContext
}

// budgets counts what was used up.
type budgets struct{ calls, random, children, requests, fuel int64 }

// budget names one of the budgets.
type budget func(*budgets) *int64

func hostCalls(b *budgets) *int64    { return &b.calls }
func randomBytes(b *budgets) *int64  { return &b.random }
func childrenMade(b *budgets) *int64 { return &b.children }
func requestsSent(b *budgets) *int64 { return &b.requests }
func fuelTaken(b *budgets) *int64    { return &b.fuel }

// New makes the state of one invocation, in PhaseWaiting and at the authority's start label.
func New(s Spec) *Invocation {
	if s.Authority == nil {
		panic("boundary: an invocation without an authority")
	}
	return newInvocation(s, &s.Authority.Spec().Limits)
}

// NewTrial makes the state of a run that may do nothing, for trying an initialiser at
// admission. It must never be given to a guest's capability.
func NewTrial(limits *abi.Limits) *Invocation {
	inv := newInvocation(Spec{Authority: new(authority.Authority)}, limits)
	inv.trial = true
	return inv
}

// states are used again, one after the other: see [Invocation.Free]. All of it is zero in between.
var states = sync.Pool{New: func() any { return new(Invocation) }}

// Free gives up the state of an invocation whose outcome was made and whose run is over; nothing may
// use it afterwards. It is used for another invocation if nobody can have kept any of it: the guest
// ended by itself, had no service act for it, and nobody waited for the end of its context.
func (inv *Invocation) Free() {
	if inv.phase != PhaseEnded || inv.served || inv.over != nil || inv.parent != nil || inv.trial || !inv.run.Alone() {
		return
	}
	*inv = Invocation{}
	states.Put(inv)
}

var discard = slog.New(slog.DiscardHandler)

func newInvocation(s Spec, limits *abi.Limits) *Invocation {
	wall := s.Now == nil
	if wall {
		s.Now = time.Now
	}
	if s.Random == nil {
		s.Random = rand.Reader
	}
	if s.Log == nil {
		s.Log = discard
	}
	inv := states.Get().(*Invocation)
	inv.authority, inv.limits, inv.services, inv.parent, inv.input = s.Authority, limits, s.Services, s.Parent, s.Input
	inv.clock, inv.wall, inv.random, inv.log, inv.witness = s.Now, wall, s.Random, s.Log, s.Witness
	inv.start = s.Now()
	inv.slice = slice
	inv.label = s.Authority.Spec().Start.Source()
	inv.logs = guestLog{lineBytes: limits.Get(abi.LimitLogLineBytes), quota: limits.Get(abi.LimitLogBytes)}
	inv.payer = s.Share
	if inv.turn = &inv.ownTurn; s.Parent != nil {
		inv.turn = s.Parent.turn
		inv.payer = s.Parent.payer
	} else {
		inv.turn.Begin(s.Share)
	}
	if s.Work > 0 {
		inv.worked = min(s.Work, inv.room())
		inv.take(inv.worked)
	}
	return inv
}

// Authority returns what the invocation may do.
func (inv *Invocation) Authority() *authority.Authority { return inv.authority }

// Limits returns what the invocation is held to. They must not be changed.
func (inv *Invocation) Limits() *abi.Limits { return inv.limits }

// Enter moves the invocation to a later phase. It panics on any other move, which would be a
// fault of the host that nothing should survive.
func (inv *Invocation) Enter(p Phase) {
	if p <= inv.phase {
		panic(fmt.Sprintf("boundary: phase %d after phase %d", p, inv.phase))
	}
	inv.phase = p
}

// Over says why the guest must not run on, or nil. Once set it stays.
func (inv *Invocation) Over() *abi.Error { return inv.over }

// Asked names the functions the initialiser called whose answers are not the same in every
// invocation, or that leave something behind: once each, in the order of the first calls.
func (inv *Invocation) Asked() []string { return inv.asked }

// finish makes the invocation over; the first reason counts.
func (inv *Invocation) finish(why *abi.Error) {
	if inv.over == nil {
		inv.over = why
		if inv.witness != nil {
			inv.witness.Over(why)
		}
	}
}

// Label implements [Flow].
func (inv *Invocation) Label() abi.Classification { return inv.label }

// Observe implements [Flow].
func (inv *Invocation) Observe(source abi.Classification) *abi.Error {
	source = source.Source()
	if ceiling := inv.authority.Spec().Ceiling; !source.FlowsTo(ceiling) {
		inv.withheld++
		return abi.Errorf(abi.CodeClassificationCeiling, "the data is %s, this invocation may read up to %s", source, ceiling.Sink())
	}
	inv.label = abi.Join(inv.label, source)
	return nil
}

// Emit implements [Flow].
func (inv *Invocation) Emit(sink abi.Classification) *abi.Error {
	if !inv.label.FlowsTo(sink) {
		return abi.Errorf(abi.CodeClassificationFlow, "the invocation has read %s data, the destination takes up to %s", inv.label, sink.Sink())
	}
	return nil
}

var _ Flow = (*Invocation)(nil)

func (inv *Invocation) scope() Scope { return Scope{Authority: inv.authority, Flow: inv} }

// Coarse resolutions of every clock a guest can read (S6).
const (
	tickBoundary   = time.Millisecond
	tickRefinement = time.Microsecond
)

func (inv *Invocation) tick() time.Duration {
	if inv.authority.Spec().Boundary {
		return tickBoundary
	}
	return tickRefinement
}

// now is the guest's clock. It does not go back within an invocation as long as the host's
// clock has a monotonic reading.
func (inv *Invocation) now() time.Time { return inv.nowAt(inv.clock()) }

// nowAt is now for a time that was just read from the invocation's clock.
func (inv *Invocation) nowAt(at time.Time) time.Time {
	return inv.start.Add(at.Sub(inv.start)).Truncate(inv.tick())
}

// spend takes n from a budget of the invocation and of all above it, or takes nothing and refuses
// with the limit's code.
func (inv *Invocation) spend(of budget, n int64, limit abi.Limit) *abi.Error {
	if err := inv.affords(of, n, limit); err != nil {
		return err
	}
	*of(&inv.used) += n
	inv.charge(of, n)
	return nil
}

// affords refuses when the invocation, or one above it, has less than n left.
func (inv *Invocation) affords(of budget, n int64, limit abi.Limit) *abi.Error {
	for up := inv; up != nil; up = up.parent {
		row, most, used := limit.Info(), up.limits.Get(limit), *of(&up.used)+*of(&up.below)
		if n > most-used {
			return abi.Errorf(row.Code, "the invocation's %s are used up: %d of %d", row.Name, used, most)
		}
	}
	return nil
}

// charge adds to what the invocations above this one have used through it.
func (inv *Invocation) charge(of budget, n int64) {
	for up := inv.parent; up != nil; up = up.parent {
		*of(&up.below) += n
	}
}

package guest

import (
	"reflect"

	"github.com/ecotone-dev/ecotone/guest/internal/call"
	"github.com/ecotone-dev/ecotone/guest/internal/warm"
)

// repeats is how often what is warmed runs: the second time finds what the first one made, and
// takes ways the first one did not.
const repeats = 3

// Capability makes an export's function of do. The function is what [Handle] is, and quicker in
// each first call: the JSON of In and Out is made ready when Capability is called, with a made-up
// value of each. Call it at package level, so that the module's initialiser does that once and
// every invocation begins with it:
//
//	var greet = guest.Capability(greeting)
//
//	//go:wasmexport greet
//	func exportGreet() int32 { return greet() }
//
// do itself is not called, but methods by which In and Out encode and decode themselves are, under
// the terms of [Warm].
func Capability[In, Out any](do func(In) (Out, error)) func() int32 {
	Warm(func() {
		in, err := encode(warm.Sample(reflect.TypeFor[In]()).Interface())
		if err != nil {
			in = []byte("null")
		}
		_ = decode(in, new(In))
	})
	Warm(func() { _, _ = encode(warm.Sample(reflect.TypeFor[Out]()).Interface()) })
	return func() int32 { return Handle(do) }
}

// Warm runs f a few times, for what it leaves in memory: tables, parsed templates, caches of
// packages. Call it in an init function or a package-level variable, which the host runs once, and
// begins every invocation with the memory they left; called in an invocation, it only takes time.
//
// f has no authority. Every function of this package that asks the host answers as a refusal,
// [EDENIED], while f runs, so that f may be a capability's own code with a made-up input, if that
// code keeps nothing of it in memory. A panic in f ends f and nothing else.
func Warm(f func()) {
	defer call.Refuse()()
	for range repeats {
		attempt(f)
	}
}

func attempt(f func()) {
	defer func() { _ = recover() }()
	f()
}

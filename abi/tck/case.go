package tck

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
)

// Case is one thing a host must do.
type Case struct {
	ID    string // function, or function/what
	About string // one sentence
	Runs  []Run  // invocations of one session, one after another
}

// Run is one invocation of a case.
type Run struct {
	Before Disturbance // what happens before it
	Steps  []Step
	Silent bool // the guest reports nothing: Want is all there is to see
	Cancel bool // it is cancelled when its request has reached /silent of the origin
	Want   Ending
}

// Ending is how a run must end. Output and Failure count for a silent run.
type Ending struct {
	Code     abi.Code
	Output   string
	Failure  Failure
	LogBytes int64 // bytes of messages the log must have; 0 is any
}

// Portable reports whether the case can be driven through a language binding: it passes no raw
// pointers.
func (c Case) Portable() bool {
	for _, r := range c.Runs {
		if !all(r.Steps, Step.portable) {
			return false
		}
	}
	return true
}

// Cases returns every case, in the order of the table of functions and of the error numbers.
func Cases() []Case {
	var out []Case
	for _, f := range abi.Functions() {
		for _, c := range written {
			if c.about() == f.Name {
				out = append(out, c.clone())
			}
		}
		if c, ok := outside(f); ok {
			out = append(out, c)
		}
	}
	return out
}

// Example is the case that shows what a function is for.
func Example(function string) (Case, bool) {
	for _, c := range written {
		if c.ID == function {
			return c.clone(), true
		}
	}
	return Case{}, false
}

// clone is the case with runs and steps that are the caller's to change.
func (c Case) clone() Case {
	c.Runs = slices.Clone(c.Runs)
	for i := range c.Runs {
		c.Runs[i].Steps = slices.Clone(c.Runs[i].Steps)
	}
	return c
}

// about is the function a case is about.
func (c Case) about() string {
	for i := range len(c.ID) {
		if c.ID[i] == '/' {
			return c.ID[:i]
		}
	}
	return c.ID
}

// outside makes the case of a function with pointers that lie outside memory, from its row: each
// pointer in turn, and lengths that would wrap around.
func outside(f abi.Function) (Case, bool) {
	c := Case{ID: f.Name + "/EFAULT", About: "A pointer and length outside memory are EFAULT, whichever argument it is, and nothing happens."}
	var pairs []int // of the arguments of a step
	args := argumentsOf(f)
	for i, a := range args {
		if _, ok := a.(Raw); ok {
			pairs = append(pairs, i)
		}
	}
	var run Run
	for _, i := range pairs {
		for _, bad := range []Raw{{0, 0xffff_ffff}, {0xffff_fff0, 0x20}, {0xffff_ffff, 0}} {
			these := argumentsOf(f)
			for _, j := range pairs {
				these[j] = Raw{0, 0}
			}
			these[i] = bad
			run.Steps = append(run.Steps, call(f.Name, these...).fails(abi.EFAULT))
		}
	}
	c.Runs = []Run{run}
	return c, len(pairs) > 0
}

// argumentsOf are arguments of the right kinds for a function: raw pairs and zeros.
func argumentsOf(f abi.Function) []any {
	var args []any
	for i := 0; i < len(f.Params); i++ {
		name := f.Params[i].Name
		switch {
		case name == "ptr": // the buffer of a function that fills one; its length is the last parameter
			args = append(args, Raw{})
		case len(name) > 4 && name[len(name)-4:] == "_ptr":
			args = append(args, Raw{})
			i++
		case name == "len" && f.Params[0].Name == "ptr":
		default:
			args = append(args, 0)
		}
	}
	return args
}

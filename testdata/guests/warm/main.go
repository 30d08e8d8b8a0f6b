// Command warm has one capability twice: with its JSON made ready by the initialiser, and
// without. What each costs shows what the initialiser saved.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

type readyIn struct {
	Names []string `json:"names"`
}

type readyOut struct {
	Count int `json:"count"`
}

// The same for Handle, because what is made ready belongs to a type.
type (
	coldIn struct {
		Names []string `json:"names"`
	}
	coldOut struct {
		Count int `json:"count"`
	}
)

var count = guest.Capability(func(in readyIn) (readyOut, error) { return readyOut{len(in.Names)}, nil })

//go:wasmexport ready
func ready() int32 { return count() }

//go:wasmexport cold
func cold() int32 {
	return guest.Handle(func(in coldIn) (coldOut, error) { return coldOut{len(in.Names)}, nil })
}

var tried, refused int

// A host ends an initialiser that asks it for anything, so that this module is admitted shows
// that it was not asked.
func init() {
	guest.Warm(func() {
		tried++
		if _, err := guest.KV.Get("k"); err == guest.EDENIED {
			refused++
		}
		guest.Logf(guest.LevelError, "unheard")
		panic("contained")
	})
}

type tries struct {
	Tried   int `json:"tried"`
	Refused int `json:"refused"`
}

//go:wasmexport tried
func howOften() int32 {
	return guest.Handle(func(struct{}) (tries, error) { return tries{tried, refused}, nil })
}

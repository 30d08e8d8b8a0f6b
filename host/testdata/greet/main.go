// Greet is a biome in Go, the way an author writes one: its runtime needs _initialize and the
// WASI subset, its initialiser draws randomness and reads a clock.
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/ecotone-dev/ecotone/guest"
)

var (
	born = time.Now()
	seed = rand.Uint64()
)

func main() {}

//go:wasmexport greet
func greet() int32 {
	return guest.Handle(func(in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "hello " + in.Name, nil
	})
}

// look answers what of the process a guest can see: nothing.
//
//go:wasmexport look
func look() int32 {
	return guest.Handle(func(struct{}) (map[string]any, error) {
		return map[string]any{"environ": os.Environ(), "args": os.Args}, nil
	})
}

// fetch goes on without what it is refused.
//
//go:wasmexport fetch
func fetch() int32 {
	return guest.Handle(func(struct{}) (string, error) {
		_, err := guest.Fetch(guest.Request{Method: "GET", URL: "https://api.example/"})
		return fmt.Sprintf("denied: %t", errors.Is(err, guest.EDENIED)), nil
	})
}

//go:wasmexport seeds
func seeds() int32 {
	return guest.Handle(func(struct{}) ([]string, error) {
		return []string{fmt.Sprint(seed), fmt.Sprint(rand.Uint64()), fmt.Sprint(born.Year() > 2000)}, nil
	})
}

// order answers in which order maps are ranged over: one that the initialiser made, and a new one.
//
//go:wasmexport order
func order() int32 {
	return guest.Handle(func(struct{}) ([]string, error) {
		return []string{ranged(early), ranged(numbers())}, nil
	})
}

var early = numbers()

func numbers() map[int]bool {
	m := make(map[int]bool)
	for n := range 100 {
		m[n] = true
	}
	return m
}

func ranged(m map[int]bool) (s string) {
	for n := range m {
		s += fmt.Sprint(n, " ")
	}
	return s
}

//go:wasmexport panics
func panics() int32 { panic("a guest's own panic") }

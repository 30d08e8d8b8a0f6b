// Command leaky keeps what a capability must not keep: a count, a text and a running
// goroutine. Under a host that restores instances none of them is there the next time.
package main

import (
	"runtime"

	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/testdata/guests/internal/scan"
)

func main() {}

var (
	count   int
	ticks   int
	planted []string
)

type in struct {
	Plant  string   `json:"plant"`  // kept in memory
	Masked []string `json:"masked"` // searched for, before anything is planted; see package scan
}

type out struct {
	Count int   `json:"count"` // invocations this memory has seen
	Ticks int   `json:"ticks"` // of a goroutine that an invocation left running
	Found []int `json:"found"`
}

//go:wasmexport bump
func bump() int32 {
	return guest.Handle(func(req in) (out, error) {
		runtime.Gosched()
		answer := out{Ticks: ticks, Found: scan.Find(req.Masked)}
		count++
		answer.Count = count
		if req.Plant != "" {
			planted = append(planted, req.Plant)
		}
		go func() {
			for {
				ticks++
				runtime.Gosched()
			}
		}()
		return answer, nil
	})
}

// Command slow takes time: so much of it, or all there is, awake or asleep.
package main

import (
	"time"

	"github.com/ecotone-dev/ecotone/guest"
)

func main() {}

type in struct {
	MS int64 `json:"ms"`
}

//go:wasmexport spin
func spin() int32 {
	return guest.Handle(func(req in) (in, error) {
		for end := time.Now().Add(time.Duration(req.MS) * time.Millisecond); time.Now().Before(end); {
		}
		return req, nil
	})
}

//go:wasmexport sleep
func sleep() int32 {
	return guest.Handle(func(req in) (in, error) {
		time.Sleep(time.Duration(req.MS) * time.Millisecond)
		return req, nil
	})
}

// forever begins with an effect, so that a test can see that it ran.
//
//go:wasmexport forever
func forever() int32 {
	guest.Logf(guest.LevelInfo, "began")
	for {
	}
}

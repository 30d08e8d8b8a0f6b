package mcp

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
)

// flight is a tool call that runs. Ids are the client's: several clients of one session may use the same at
// once, and each has its answer by its own connection (PF-E7).
type flight struct {
	key       string
	cancelled atomic.Bool
}

// flights are the calls that run, by session and id, for the cancellations of the older version of the
// protocol, which come by requests of their own.
type flights struct {
	mu sync.Mutex
	of map[string][]*flight
}

func flightKey(session string, id json.RawMessage) string { return session + "\x00" + string(id) }

func (f *flights) begin(session string, id json.RawMessage) *flight {
	x := &flight{key: flightKey(session, id)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[x.key] = append(f.of[x.key], x)
	return x
}

func (f *flights) end(x *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := slices.DeleteFunc(f.of[x.key], func(o *flight) bool { return o == x })
	if f.of[x.key] = left; len(left) == 0 {
		delete(f.of, x.key)
	}
}

// cancel cancels the one call that has the id. Of several nobody can say which is meant, and none is.
func (f *flights) cancel(session string, id json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.of[flightKey(session, id)]; len(all) == 1 {
		all[0].cancelled.Store(true)
	}
}

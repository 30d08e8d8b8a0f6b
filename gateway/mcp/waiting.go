package mcp

import (
	"container/list"
	"sync"
)

// maxWaiting bounds the calls that are remembered. Past it the oldest is forgotten: the same call again then
// asks for another approval, and the answer of the forgotten one is there by its state and over HTTP.
const maxWaiting = 16 << 10

// waiting are the calls that wait for an approver, so that a client that has no state to carry finds them by
// making the same call. It is lost with the process.
type waiting struct {
	mu    sync.Mutex
	of    map[string]*list.Element // by what makes a call the same
	order *list.List               // of entry, oldest first
}

type entry struct{ call, id string }

func newWaiting() *waiting { return &waiting{of: map[string]*list.Element{}, order: list.New()} }

func (w *waiting) add(call, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.of[call]; e != nil {
		w.order.Remove(e)
	}
	w.of[call] = w.order.PushBack(entry{call, id})
	if w.order.Len() > maxWaiting {
		oldest := w.order.Front()
		delete(w.of, w.order.Remove(oldest).(entry).call)
	}
}

func (w *waiting) find(call string) (id string, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.of[call]
	if e == nil {
		return "", false
	}
	return e.Value.(entry).id, true
}

// remove forgets a call, if it is still the one with the id.
func (w *waiting) remove(call, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.of[call]; e != nil && e.Value.(entry).id == id {
		w.order.Remove(e)
		delete(w.of, call)
	}
}

package policy

import (
	"container/heap"
	"time"
)

// expiries is when the sessions of one organisation end, the next one first: what has expired is
// found without looking at the others. Sessions that were closed stay in it until their time
// comes, or until they are more than those that are open.
type expiries struct {
	open int64
	ends ends
}

type end struct {
	at time.Time
	id string
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }

func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = end{}
	*e = (*e)[:len(*e)-1]
	return last
}

func (e *expiries) add(at time.Time, id string) {
	e.open++
	heap.Push(&e.ends, end{at, id})
}

// expired takes out a session whose time has come.
func (e *expiries) expired(now time.Time) (id string, ok bool) {
	if len(e.ends) == 0 || now.Before(e.ends[0].at) {
		return "", false
	}
	return heap.Pop(&e.ends).(end).id, true
}

// slack is how many closed sessions are kept without a look.
const slack = 1024

// compact forgets the closed sessions when they are the greater part.
func (e *expiries) compact(open func(id string) bool) {
	if int64(len(e.ends)) <= 2*e.open+slack {
		return
	}
	kept := make(ends, 0, e.open)
	for _, x := range e.ends {
		if open(x.id) {
			kept = append(kept, x)
		}
	}
	e.ends = kept
	heap.Init(&e.ends)
}

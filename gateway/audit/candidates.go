package audit

import (
	"slices"

	"github.com/oklog/ulid/v2"
)

// candidates lists the next rows of an organisation in the query's order, and where to go on behind
// them; "" says that there is nothing. Rows and files are bounded, so that there may be few or none and
// still something behind: then the cursor stands between rows.
func (l *Log) candidates(org string, q *Query) (rows []rowRef, rest string, err error) {
	w := walk{oldest: q.Oldest}
	if q.After != "" {
		w.after, _ = parseID(q.After) // check did
		w.from = true
	}
	l.mu.RLock()
	sealed := l.index.sealed
	for _, s := range []*segment{l.index.current, l.index.previous} {
		if s != nil {
			w.add(s.orgs[org])
		}
	}
	l.mu.RUnlock()
	if n := len(sealed); n > 0 {
		sealed = sealed[:n-1] // the last of them is previous
	}

	// The file whose rows come next first. It may be any: a row that was long open is in a late one.
	order := slices.Clone(sealed)
	slices.SortStableFunc(order, func(a, b span) int { return w.compare(w.near(&a), w.near(&b)) })
	loads := 0
	for i := range order {
		s := &order[i]
		if w.from && w.compare(w.far(s), w.after) <= 0 {
			continue // all of it is before the cursor
		}
		ahead := !w.from || w.compare(w.near(s), w.after) > 0
		if ahead && w.full(w.near(s)) {
			break
		}
		// Files that the cursor is in the middle of do not count, so that every page gets on.
		if ahead && loads == maxLoads {
			rest = w.stop(w.near(s))
			break
		}
		if ahead {
			loads++
		}
		read, err := l.segments.get(*s)
		if err != nil {
			return nil, "", err
		}
		w.add(read.orgs[org])
	}
	if w.trim() {
		rest = w.rows[len(w.rows)-1].id.String()
	}
	return w.rows, rest, nil
}

// walk collects rows in one direction from a cursor.
type walk struct {
	oldest bool
	from   bool
	after  ulid.ULID
	rows   []rowRef // in order, each id once, when settled
}

// compare compares ids in the direction of the walk.
func (w *walk) compare(a, b ulid.ULID) int {
	if w.oldest {
		return a.Compare(b)
	}
	return b.Compare(a)
}

// near and far are the ends of a file's ids that the walk comes to first and last.
func (w *walk) near(s *span) ulid.ULID {
	if w.oldest {
		return s.min
	}
	return s.max
}

func (w *walk) far(s *span) ulid.ULID {
	if w.oldest {
		return s.max
	}
	return s.min
}

// add takes the next rows of one file behind the cursor: more than are looked at for a page are not
// needed of any.
func (w *walk) add(in []rowRef) {
	lo, hi := 0, len(in)
	if w.from {
		i, found := slices.BinarySearchFunc(in, w.after, byID)
		switch {
		case !w.oldest:
			hi = i
		case found:
			lo = i + 1
		default:
			lo = i
		}
	}
	if w.oldest {
		hi = min(hi, lo+maxScan+1)
	} else {
		lo = max(lo, hi-maxScan-1)
	}
	w.rows = append(w.rows, in[lo:hi]...)
	w.settle()
}

// settle orders what was collected. Of a row in several files the last entry counts.
func (w *walk) settle() {
	slices.SortFunc(w.rows, func(a, b rowRef) int {
		if c := w.compare(a.id, b.id); c != 0 {
			return c
		}
		if a.last > b.last {
			return -1
		}
		return 1
	})
	w.rows = slices.CompactFunc(w.rows, func(a, b rowRef) bool { return a.id == b.id })
	w.rows = w.rows[:min(len(w.rows), maxScan+1)] // one more says that there is more
}

// full reports whether nothing from near on can be among the rows of this page.
func (w *walk) full(near ulid.ULID) bool {
	return len(w.rows) > maxScan && w.compare(w.rows[maxScan].id, near) < 0
}

// trim cuts what was collected to what is looked at for a page, and reports whether something was.
func (w *walk) trim() bool {
	if len(w.rows) <= maxScan {
		return false
	}
	w.rows = w.rows[:maxScan]
	return true
}

// stop gives up what may be incomplete, from near on, and returns a cursor right before near.
func (w *walk) stop(near ulid.ULID) string {
	n := len(w.rows)
	for n > 0 && w.compare(w.rows[n-1].id, near) >= 0 {
		n--
	}
	w.rows = w.rows[:n]
	return neighbour(near, w.oldest).String()
}

// neighbour is the id before or after another.
func neighbour(id ulid.ULID, before bool) ulid.ULID {
	for i := len(id) - 1; i >= 0; i-- {
		if before {
			if id[i]--; id[i] != 0xff {
				break
			}
		} else if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

package audit

import (
	"context"
	"errors"
	"slices"
)

// Recover closes the invocations that the process before left open: each gets an ended entry
// with outcome interrupted that lists the effects whose end is unknown (S8). An effect
// that was never announced never happened, for nothing acts before its announcement is on
// disk. Recover returns how many rows it closed, and records that number and the
// bytes that [Open] cut and the entries it adopted, when there were any. Call it before the first append.
func (l *Log) Recover(ctx context.Context) (int, error) {
	l.mu.RLock()
	open := make([]rowKey, 0, len(l.index.open))
	for k, r := range l.index.open {
		if !r.waits { // a person has time, and no process
			open = append(open, k)
		}
	}
	found := l.found
	l.mu.RUnlock()
	slices.SortFunc(open, func(a, b rowKey) int { return a.id.Compare(b.id) })

	closed := 0
	for _, k := range open {
		ended, err := l.interrupted(k)
		if errors.Is(err, errErased) {
			continue // nothing can be read or written for it any more
		}
		if err != nil {
			return closed, err
		}
		if err := l.AppendAsync(ctx, Event{Org: k.org, ID: k.id.String(), Body: ended}); err != nil {
			return closed, err
		}
		closed++
	}
	if closed == 0 && found.cut == 0 && found.adopted == 0 {
		return 0, nil
	}
	// The answer to this event covers all that were queued before it.
	if _, err := l.Append(ctx, Event{Body: System{Event: "recovered", Interrupted: closed, CutBytes: found.cut, Adopted: found.adopted}}); err != nil {
		return closed, err
	}
	l.mu.Lock()
	l.found.cut, l.found.adopted = 0, 0
	l.mu.Unlock()
	return closed, nil
}

// RowID names a row.
type RowID struct{ Org, ID string }

// Waiting lists the rows that wait for a person, in no order.
func (l *Log) Waiting() []RowID {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []RowID
	for k, r := range l.index.open {
		if r.waits {
			out = append(out, RowID{k.org, k.id.String()})
		}
	}
	return out
}

// interrupted is the end of a row that has none.
func (l *Log) interrupted(k rowKey) (Ended, error) {
	rd, err := l.reader(k.org)
	if err != nil {
		return Ended{}, err
	}
	if rd == nil {
		return Ended{}, errErased
	}
	defer rd.close()
	l.mu.RLock()
	last := l.index.open[k].last
	l.mu.RUnlock()
	row, err := rd.row(rowRef{id: k.id, last: last})
	if err != nil {
		return Ended{}, err
	}
	e := Ended{Outcome: OutcomeInterrupted}
	if row.Decision != nil {
		e.Label = row.Decision.Ceiling // what it read is unknown, but no more than it could
	}
	for _, f := range row.Effects {
		if f.Outcome == EffectOpen {
			e.Unknown = append(e.Unknown, f.Line)
		}
	}
	return e, nil
}

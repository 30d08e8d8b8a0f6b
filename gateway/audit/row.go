package audit

import (
	_ "embed"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// RowSchema is the JSON Schema (2020-12) of a [Row] as JSON. It is a stable contract (PF-G6).
//
//go:embed row.schema.json
var RowSchema []byte

// EffectRow is one announced effect of an invocation.
type EffectRow struct {
	Line     int      `json:"line"`
	Function string   `json:"function"`
	Target   string   `json:"target,omitempty"`
	Outcome  string   `json:"outcome"`
	Code     abi.Code `json:"code,omitempty"`
}

// Outcomes of an effect.
const (
	EffectOpen    = "open"
	EffectDone    = "done"
	EffectFailed  = "failed"
	EffectUnknown = "unknown" // announced, and nobody knows whether it happened (S8)
)

// Row is what an auditor sees: one invocation (X48), or one event that belongs to none. ID is the
// audit id that problem documents carry.
type Row struct {
	ID         string      `json:"auditId"`
	Kind       string      `json:"kind"`
	Org        string      `json:"org"`
	Time       time.Time   `json:"time"`
	Index      uint64      `json:"index"`   // of the first entry
	Entries    int         `json:"entries"` // how many were folded
	Invocation string      `json:"invocationId,omitempty"`
	Decision   *Decided    `json:"decision,omitempty"`
	Resolution *Resolved   `json:"resolution,omitempty"` // of one that needed an approval, once it waits no more
	ResolvedAt *time.Time  `json:"resolvedAt,omitempty"`
	StartedAt  *time.Time  `json:"startedAt,omitempty"`
	Effects    []EffectRow `json:"effects,omitempty"`
	EndedAt    *time.Time  `json:"endedAt,omitempty"`
	Ended      *Ended      `json:"ended,omitempty"`
	Refused    *Refused    `json:"refused,omitempty"`
	Admin      *Admin      `json:"admin,omitempty"`
	// Cancel is how far a cancellation is: proven, of a row that has ended after one was requested.
	// While it runs only who runs it knows.
	Cancel CancelState `json:"cancel,omitempty"`
	System *System     `json:"system,omitempty"`
	// Withheld is set by [Row.View]: the reader is not cleared for the rest.
	Withheld bool `json:"withheld,omitempty"`
}

// Kinds of rows.
const (
	RowInvocation = "invocation"
	RowRefused    = "refused"
	RowAdmin      = "admin"
	RowSystem     = "system"
)

// rowKind is the kind of the row that an entry of kind k is part of.
func rowKind(k Kind) string {
	switch k {
	case KindRefused:
		return RowRefused
	case KindAdmin:
		return RowAdmin
	case KindSystem:
		return RowSystem
	}
	return RowInvocation
}

// Fold makes one row of the entries of one row id, which must be in order of index and whole: an
// invocation begins with its decision.
func Fold(entries []Entry) (Row, error) {
	if len(entries) == 0 {
		return Row{}, abi.Errorf(abi.CodeNotFound, "there is no such audit row")
	}
	begin := entries[0]
	row := Row{
		ID: begin.ID, Org: begin.Org, Time: begin.Time, Index: begin.Index, Entries: len(entries),
		Kind: rowKind(begin.Body.Kind()),
	}
	odd := func(e Entry, what string) (Row, error) {
		return Row{}, abi.Errorf(abi.CodeInternal, "audit entry %d %s", e.Index, what)
	}
	for i, e := range entries {
		k := e.Body.Kind()
		switch {
		case e.ID != begin.ID || e.Org != begin.Org || (i > 0 && e.Index <= entries[i-1].Index):
			return odd(e, "does not belong to its row")
		case (i == 0) != (k == KindDecided || standalone(k)):
			return odd(e, "is out of order")
		case row.Ended != nil, i > 0 && row.Decision != nil && k != KindResolved && !row.ran():
			return odd(e, "follows the end of its row")
		}
		switch b := e.Body.(type) {
		case Decided:
			row.Decision, row.Invocation = &b, e.ID
			if b.Code == abi.CodeCanceled { // while it waited for its turn
				row.Cancel = CancelProven
			}
		case Resolved:
			if i != 1 || row.Decision.Verdict != VerdictNeedsApproval {
				return odd(e, "resolves what does not wait")
			}
			row.Resolution, row.ResolvedAt = &b, &e.Time
			if b.Resolution == ResolvedWithdrawn {
				row.Cancel = CancelProven
			}
		case Started:
			row.StartedAt = &e.Time
		case Effect:
			row.Effects = append(row.Effects, EffectRow{Line: b.Line, Function: b.Function, Target: b.Target, Outcome: EffectOpen})
		case EffectClosed:
			row.closeEffect(b)
		case Ended:
			row.Ended, row.EndedAt = &b, &e.Time
			if b.Cancel != nil {
				row.Cancel = CancelProven
			}
			for i := range row.Effects {
				if row.Effects[i].Outcome == EffectOpen {
					row.Effects[i].Outcome = EffectUnknown
				}
			}
		case Refused:
			row.Refused = &b
		case Admin:
			row.Admin = &b
		case System:
			row.System = &b
		}
	}
	return row, nil
}

// closeEffect settles the announced effect of a line.
func (r *Row) closeEffect(c EffectClosed) {
	for i := range r.Effects {
		e := &r.Effects[i]
		if e.Line != c.Line || e.Outcome != EffectOpen {
			continue
		}
		e.Outcome, e.Code = EffectDone, c.Code
		if c.Code != "" {
			e.Outcome = EffectFailed
		}
		return
	}
}

// View is the row as a reader with this clearance may see it. When the label of what happened
// does not flow to the clearance, everything that depends on the data is withheld: outcome,
// code, effects, receipt, sizes and times of what came after the decision (S6). Until an
// invocation has ended its label is not known, and it is withheld from every reader: nobody
// could say what the reader takes on. Of a denial, what is known of its input is.
//
// That an invocation is over which somebody cancelled is not withheld: who asked is owed the proof,
// and would notice the answer come.
//
// A reader takes on [Row.Label] of what is not withheld.
func (r Row) View(clearance abi.Classification) Row {
	if r.Decision == nil {
		return r
	}
	d := *r.Decision
	if !r.ran() {
		if !d.Label.FlowsTo(clearance) {
			d.InputBytes, d.InputDigest = 0, ""
			r.Decision = &d
		}
		return r
	}
	if r.Ended != nil && r.Label().FlowsTo(clearance) {
		return r
	}
	d.InputBytes, d.InputDigest = 0, ""
	return Row{
		ID: r.ID, Kind: r.Kind, Org: r.Org, Time: r.Time, Index: r.Index, Entries: 1, Invocation: r.Invocation,
		Decision: &d, Resolution: r.Resolution, ResolvedAt: r.ResolvedAt, Withheld: true, Cancel: r.Cancel,
	}
}

// ran reports whether a guest was started, or is about to be.
func (r *Row) ran() bool {
	return r.Decision.Verdict == VerdictAllow || r.Resolution != nil && r.Resolution.Resolution == ResolvedApproved
}

// Label is how sensitive an invocation's row is: the final label of what ran, and public for a
// decision alone, which is made of policy. An invocation that has not ended is regulated.
func (r Row) Label() abi.Classification {
	switch {
	case r.Withheld || r.Decision == nil || !r.ran():
		return abi.Public
	case r.Ended == nil:
		return abi.Regulated
	}
	return r.Ended.Label.Source()
}

package invoke

import "github.com/ecotone-dev/ecotone/gateway/audit"

// ownRow is a row as a session is shown its own: without the numbers that count what the whole server
// does, which would tell one organisation how busy another is, and a low session how many entries a
// high one made (S6).
type ownRow struct {
	audit.Row
	Index    uint64       `json:"index,omitzero"` // hides the row's own
	Decision *ownDecision `json:"decision,omitempty"`
}

type ownDecision struct {
	audit.Decided
	Generation uint64 `json:"policyGeneration,omitzero"` // hides the decision's own
}

func toOwner(r audit.Row) ownRow {
	out := ownRow{Row: r}
	if r.Decision != nil {
		out.Decision = &ownDecision{Decided: *r.Decision}
	}
	if r.Ended != nil {
		e := *r.Ended
		e.Generation, out.Ended = 0, &e
	}
	return out
}

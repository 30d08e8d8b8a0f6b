package audit

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// EffectRow is one announced effect of an invocation.
type EffectRow struct {
	Line     int      `json:"line"`
	Function string   `json:"function"`
	Target   string   `json:"target,omitempty"`
	Outcome  string   `json:"outcome"` // done, failed, unknown; open while the invocation runs
	Code     abi.Code `json:"code,omitempty"`
}

// Outcomes of an effect.
const (
	EffectDone    = "done"
	EffectFailed  = "failed"
	EffectUnknown = "unknown" // announced, and nobody knows whether it happened
	EffectOpen    = "open"
)

// Row is what an auditor sees: one invocation, or one event that belongs to none. ID is the
// audit id that problem documents carry.
type Row struct {
	ID         string      `json:"auditId"`
	Kind       string      `json:"kind"` // invocation, refused, admin, system
	Org        string      `json:"org"`
	Time       time.Time   `json:"time"`
	Index      uint64      `json:"index"` // of the first entry
	Entries    int         `json:"entries"`
	Invocation string      `json:"invocationId,omitempty"`
	Decision   *Decided    `json:"decision,omitempty"`
	StartedAt  *time.Time  `json:"startedAt,omitempty"`
	Effects    []EffectRow `json:"effects,omitempty"`
	EndedAt    *time.Time  `json:"endedAt,omitempty"`
	Ended      *Ended      `json:"ended,omitempty"`
	Refused    *Refused    `json:"refused,omitempty"`
	Admin      *Admin      `json:"admin,omitempty"`
	System     *System     `json:"system,omitempty"`
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

// Query selects rows of one organisation. Empty fields select everything.
type Query struct {
	Kind       string // a row kind
	Invocation string
	Capability abi.CapabilityRef
	Subject    abi.Subject
	Verdict    Verdict
	Parent     string // invocations made by this one (X32)
	After      string // cursor: [Page.Next] of the page before
	Oldest     bool   // oldest first; otherwise newest first
	Limit      int    // 1 to [MaxPage]; 0 is 50
}

// Bounds of one query.
const (
	MaxPage = 500
	maxScan = 5000 // rows read for one page; a page that hits it may be short and has a Next
)

// Page is one page of rows. Next is "" when there is nothing more.
type Page struct {
	Rows []Row  `json:"rows"`
	Next string `json:"next,omitempty"`
}

// Fold makes one row of the entries of one row id, which must be in order of index.
func Fold(entries []Entry) (Row, error) {
	if len(entries) == 0 {
		return Row{}, abi.Errorf(abi.CodeNotFound, "there is no such audit row")
	}
	return Row{}, abi.Errorf(abi.CodeNotReady, "rows are not folded yet")
}

// View is the row as a reader with this clearance may see it. When the label of what happened
// does not flow to the clearance, everything that depends on the data is withheld: outcome,
// code, effects, receipt, sizes and times of the end (S6). The decision stays.
func (r Row) View(clearance abi.Classification) Row { return r }

package report

import (
	"fmt"
	"strings"
)

// Status says what came of a row's target.
type Status string

// The statuses. A row without a target that was measured has none.
const (
	Reached    Status = "reached"
	NotReached Status = "not reached"
	NotBuilt   Status = "not built" // the product cannot do it yet
	FullOnly   Status = "full only" // needs longer than a quick run has
	Skipped    Status = "skipped"   // the machine lacks something; the note says what
)

// Better says which way a target bounds a ratio.
type Better string

const (
	AtLeast Better = "≥"
	AtMost  Better = "≤"
)

// Target is a bound on a row's ratio.
type Target struct {
	Better Better  `json:"better"`
	Bound  float64 `json:"bound"`
}

func (t Target) String() string { return fmt.Sprintf("%s %g", t.Better, t.Bound) }

// Met reports whether a ratio is within the bound. A ratio that is not a number is not.
func (t Target) Met(ratio float64) bool {
	if t.Better == AtMost {
		return ratio <= t.Bound
	}
	return ratio >= t.Bound
}

// Row is one line of the report. Make it with [Measured], [Counted] or [Unmeasured].
type Row struct {
	Group     string  `json:"group"`
	Name      string  `json:"name"`
	Unit      string  `json:"unit,omitempty"`
	Value     float64 `json:"value"`
	Low       float64 `json:"low,omitempty"` // of the interval that holds the value, see [Estimate]
	High      float64 `json:"high,omitempty"`
	Rounds    int     `json:"rounds,omitempty"`
	Exact     bool    `json:"exact,omitempty"`     // counted, not timed: there is no spread
	Reference string  `json:"reference,omitempty"` // what the ratio is against
	Ratio     float64 `json:"ratio,omitempty"`     // what it means is in Reads
	RatioLow  float64 `json:"ratioLow,omitempty"`
	RatioHigh float64 `json:"ratioHigh,omitempty"`
	Reads     string  `json:"reads,omitempty"` // "times faster than", "times" …
	Target    *Target `json:"target,omitempty"`
	Status    Status  `json:"status,omitempty"`
	Close     bool    `json:"close,omitempty"` // the target lies within the ratio's interval
	Note      string  `json:"note,omitempty"`
}

// Measured is a row of what each round measured.
func Measured(group, name, unit string, rounds []float64) Row {
	e := Of(rounds)
	return Row{Group: group, Name: name, Unit: unit, Value: e.Mid, Low: e.Low, High: e.High, Rounds: e.Rounds}
}

// Counted is a row of a number that no clock has a part in.
func Counted(group, name, unit string, n float64) Row {
	return Row{Group: group, Name: name, Unit: unit, Value: n, Exact: true}
}

// Unmeasured is a row that says why it has no value.
func Unmeasured(group, name string, why Status, note string) Row {
	return Row{Group: group, Name: name, Status: why, Note: note}
}

// Against adds the ratio to a reference: its median over the rounds' own ratios, each of two
// measurements that ran soon after one another.
func (row Row) Against(reference, reads string, ratios []float64) Row {
	e := Of(ratios)
	row.Reference, row.Reads, row.Ratio, row.RatioLow, row.RatioHigh = reference, reads, e.Mid, e.Low, e.High
	row.Rounds = max(row.Rounds, e.Rounds)
	return row
}

// Aim gives the row a target; nil leaves it without.
func (row Row) Aim(t *Target) Row {
	row.Target = t
	return row
}

// Noting adds to the row's note.
func (row Row) Noting(format string, args ...any) Row {
	row.Note = strings.TrimSpace(row.Note + " " + fmt.Sprintf(format, args...))
	return row
}

func (row Row) judged() Row {
	if row.Status != "" || row.Target == nil {
		return row
	}
	row.Status = NotReached
	if row.Target.Met(row.Ratio) {
		row.Status = Reached
	}
	row.Close = row.Rounds > 1 && row.Target.Met(row.RatioLow) != row.Target.Met(row.RatioHigh)
	return row
}

func (row Row) measured() bool {
	return row.Status != NotBuilt && row.Status != FullOnly && row.Status != Skipped
}

func (row Row) value() string {
	switch {
	case !row.measured():
		return ""
	case row.Exact:
		return Human(row.Value, row.Unit)
	}
	return Human(row.Value, row.Unit) + " " + spread(Estimate{row.Value, row.Low, row.High, row.Rounds})
}

func (row Row) ratio() string {
	if !row.measured() || row.Reference == "" {
		return ""
	}
	interval := ""
	if row.RatioHigh > 0 && row.Rounds > 1 {
		interval = fmt.Sprintf(" [%.3g, %.3g]", row.RatioLow, row.RatioHigh)
	}
	return fmt.Sprintf("%.3g%s %s %s", row.Ratio, interval, row.Reads, row.Reference)
}

func (row Row) verdict() string {
	if row.Close {
		return string(row.Status) + ", within the spread"
	}
	return string(row.Status)
}

// spread renders an interval. What was measured once has none, and says so.
func spread(e Estimate) string {
	if e.Rounds < 2 {
		return "(once)"
	}
	return fmt.Sprintf("±%.0f%%", 100*e.spread())
}

// Human renders a value. Durations are given in nanoseconds.
func Human(v float64, unit string) string {
	switch {
	case unit == "ns" && v >= 1e9:
		return fmt.Sprintf("%.3g s", v/1e9)
	case unit == "ns" && v >= 1e6:
		return fmt.Sprintf("%.3g ms", v/1e6)
	case unit == "ns" && v >= 1e3:
		return fmt.Sprintf("%.3g µs", v/1e3)
	case unit == "ns" || unit == "" || v < 1e3:
		return strings.TrimSpace(fmt.Sprintf("%.3g %s", v, unit))
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

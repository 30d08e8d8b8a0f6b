// Package report holds the rows of a benchmark run and renders them: JSON for machines,
// markdown with plots for people.
//
// It promises that a row says what was measured, against what in the same run, and whether
// the target is reached; and that a row that was not measured says why. It refuses to know
// how anything is measured.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
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

// Row is one line of the report.
type Row struct {
	Group     string  `json:"group"`
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Reference string  `json:"reference,omitempty"` // name of the row the ratio is against
	Ratio     float64 `json:"ratio,omitempty"`     // what it means is in Reads
	Reads     string  `json:"reads,omitempty"`     // "times faster than", "times" …
	Target    *Target `json:"target,omitempty"`
	Status    Status  `json:"status,omitempty"`
	Note      string  `json:"note,omitempty"`
}

// Machine is what the run ran on, without anything that names it.
type Machine struct {
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"`
	Go     string `json:"go"`
	Load   string `json:"loadAtStart,omitempty"`
}

// Point is one point of a series.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Series is one line of a plot.
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Bar is one bar of a plot.
type Bar struct {
	Name  string
	Value float64
	Ours  bool // drawn to stand out
	Label string
}

// Report is one run.
type Report struct {
	Mode    string              `json:"mode"` // quick or full
	Started time.Time           `json:"started"`
	Seconds float64             `json:"seconds"`
	Machine Machine             `json:"machine"`
	Peers   map[string]string   `json:"peers"` // what was linked, and its version
	Rows    []Row               `json:"rows"`
	Series  map[string][]Series `json:"series"` // of the plots

	plots []plot
}

type plot struct{ file, title, svg string }

// New begins a report. quick says which mode.
func New(quick bool) *Report {
	mode := "full"
	if quick {
		mode = "quick"
	}
	return &Report{Mode: mode, Started: time.Now().UTC(), Machine: machine(), Peers: map[string]string{}, Series: map[string][]Series{}}
}

func machine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	m.Kernel = first("/proc/sys/kernel/osrelease")
	m.Load = first("/proc/loadavg")
	m.CPU = field("/proc/cpuinfo", "model name")
	m.Memory = field("/proc/meminfo", "MemTotal")
	return m
}

func first(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return line
}

func field(path, name string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Add appends a row and judges it. A row whose status is set keeps it.
func (r *Report) Add(row Row) {
	if row.Status == "" && row.Target != nil {
		row.Status = NotReached
		if row.Target.Met(row.Ratio) {
			row.Status = Reached
		}
	}
	r.Rows = append(r.Rows, row)
}

// Plot adds a plot; title is its caption in the report.
func (r *Report) Plot(file, title, svg string) { r.plots = append(r.plots, plot{file, title, svg}) }

// Write puts latest.json, report.md and the plots into dir.
func (r *Report) Write(dir string) error {
	r.Seconds = time.Since(r.Started).Seconds()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "latest.json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	for _, p := range r.plots {
		if err := os.WriteFile(filepath.Join(dir, p.file), []byte(p.svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.Markdown()), 0o644)
}

// Markdown renders the report.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmark report\n\nOne %s run of `make bench`, started %s, %.0f s long. ", r.Mode, r.Started.Format("2006-01-02 15:04 UTC"), r.Seconds)
	m := r.Machine
	fmt.Fprintf(&b, "Machine: %d CPUs (%s), %s, %s/%s, kernel %s, %s, load %s at the start.\n\n", m.CPUs, m.CPU, m.Memory, m.OS, m.Arch, m.Kernel, m.Go, m.Load)
	b.WriteString("Ratios within this run are what counts; absolute numbers belong to the machine. What is compared with what, and how, is in [docs/benchmarks.md](../../docs/benchmarks.md).\n\n")
	for _, k := range sortedKeys(r.Peers) {
		fmt.Fprintf(&b, "- %s: %s\n", k, r.Peers[k])
	}
	b.WriteString("\n## Targets\n\n")
	r.table(&b, func(row Row) bool { return row.Target != nil })
	for _, p := range r.plots {
		fmt.Fprintf(&b, "\n![%s](%s)\n", p.title, p.file)
	}
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g)
		r.table(&b, func(row Row) bool { return row.Group == g })
	}
	return b.String()
}

func (r *Report) groups() []string {
	var out []string
	seen := map[string]bool{}
	for _, row := range r.Rows {
		if !seen[row.Group] {
			seen[row.Group] = true
			out = append(out, row.Group)
		}
	}
	return out
}

func (r *Report) table(b *strings.Builder, keep func(Row) bool) {
	b.WriteString("| what | value | ratio | target | status |\n|---|---:|---|---|---|\n")
	var notes []string
	for _, row := range r.Rows {
		if !keep(row) {
			continue
		}
		name := row.Name
		if row.Note != "" {
			notes = append(notes, row.Note)
			name += fmt.Sprintf(" (%d)", len(notes))
		}
		target := ""
		if row.Target != nil {
			target = row.Target.String()
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", name, row.value(), row.ratio(), target, row.Status)
	}
	for i, n := range notes {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "(%d) %s\n", i+1, n)
		if i < len(notes)-1 {
			b.WriteString("\n")
		}
	}
}

func (row Row) measured() bool {
	return row.Status != NotBuilt && row.Status != FullOnly && row.Status != Skipped
}

func (row Row) value() string {
	if !row.measured() {
		return ""
	}
	return Human(row.Value, row.Unit)
}

func (row Row) ratio() string {
	if !row.measured() || row.Reference == "" {
		return ""
	}
	return fmt.Sprintf("%.3g %s %s", row.Ratio, row.Reads, row.Reference)
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
	case unit == "ns" || unit == "" || v < 1e4:
		return strings.TrimSpace(fmt.Sprintf("%.3g %s", v, unit))
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// Text renders the rows for a terminal.
func (r *Report) Text() string {
	var b strings.Builder
	group := ""
	for _, row := range r.Rows {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		fmt.Fprintf(&b, "  %-62s %12s", row.Name, row.value())
		if s := row.ratio(); s != "" {
			fmt.Fprintf(&b, "  %s", s)
		}
		if row.Target != nil {
			fmt.Fprintf(&b, "  (target %s)", row.Target)
		}
		if row.Status != "" {
			fmt.Fprintf(&b, "  %s", strings.ToUpper(string(row.Status)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

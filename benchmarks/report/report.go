// Package report holds the rows of a benchmark run and renders them: JSON for machines,
// markdown with plots for people.
//
// It promises that a row says what was measured, how far its rounds lie apart, against what in
// the same run, and whether the target is reached; and that a row that was not measured says
// why. It refuses to know how anything is measured.
package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// Report is one run.
type Report struct {
	Mode    string              `json:"mode"` // quick or full
	Command string              `json:"command"`
	Started time.Time           `json:"started"`
	Seconds float64             `json:"seconds"`
	Machine Machine             `json:"machine"`
	Noise   Noise               `json:"noise"`
	Peers   map[string]string   `json:"peers"` // what was linked, and its version
	Rows    []Row               `json:"rows"`
	Series  map[string][]Series `json:"series"` // of the plots
	Plots   []Plot              `json:"plots"`
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
	Style  Style   `json:"-"`
}

// Plot is a drawing beside the report.
type Plot struct {
	File  string `json:"file"`
	Title string `json:"title"`
	svg   string
}

// New begins a report. quick says which mode.
func New(quick bool) *Report {
	r := &Report{Mode: "full", Command: "make bench", Started: time.Now().UTC(), Machine: machine(), Peers: map[string]string{}, Series: map[string][]Series{}}
	if quick {
		r.Mode, r.Command = "quick", "make bench QUICK=1"
	}
	return r
}

// Add appends a row and judges it. A row whose status is set keeps it.
func (r *Report) Add(row Row) { r.Rows = append(r.Rows, row.judged()) }

// Plot adds a plot; title is its caption. Without one there was too little to draw.
func (r *Report) Plot(file, title, svg string) {
	if svg != "" {
		r.Plots = append(r.Plots, Plot{file, title, svg})
	}
}

// Write puts latest.json, report.md and the plots into dir. Plots of an earlier run that this one
// did not draw are removed.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{"latest.json": append(raw, '\n'), "report.md": []byte(r.Markdown())}
	for _, p := range r.Plots {
		files[p.File] = []byte(p.svg)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Read is the report that Write left in dir. The plots themselves stay where they are.
func Read(dir string) (*Report, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "latest.json"))
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, err
	}
	return r, nil
}

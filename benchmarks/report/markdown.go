package report

import (
	"fmt"
	"strings"
)

// Markdown renders the report.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmark report\n\nOne %s run of `%s`, %s, %.0f s long.\nMachine: %s.\n%s\n\n",
		r.Mode, r.Command, r.Started.Format("2006-01-02 15:04 UTC"), r.Seconds, r.Machine, r.Noise)
	b.WriteString("Ratios within this run are what counts; absolute numbers belong to the machine. What is compared with what, and how, is in\n" +
		"[docs/benchmarks.md](../../docs/benchmarks.md). ±: the interval that holds the median in 95 of 100 runs (of fewer than six rounds, all of them);\n" +
		"brackets are the same of a ratio.\n\n")
	b.WriteString(r.Versions())
	b.WriteString("\n## To reach\n\n")
	r.table(&b, func(row Row) bool { return row.Target != nil }, Row.title)
	r.drawings(&b, "")
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g)
		r.table(&b, func(row Row) bool { return row.Group == g }, func(row Row) string { return row.Name })
	}
	return b.String()
}

func (r *Report) drawings(b *strings.Builder, folder string) {
	for _, p := range r.Plots {
		fmt.Fprintf(b, "\n%s:\n\n![%s](%s%s)\n", p.Title, p.Title, folder, p.File)
	}
}

// Summary is what a document that is not the report shows of it: what ran where, the rows with a
// target, and the plots, which are in folder as the document sees it.
func (r *Report) Summary(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`, %s, %.0f s, on %s. %s\n\n", r.Command, r.Started.Format("2006-01-02"), r.Seconds, r.Machine, r.Noise)
	r.table(&b, func(row Row) bool { return row.Target != nil }, Row.title)
	r.drawings(&b, folder)
	fmt.Fprintf(&b, "\nAll rows: [report](%sreport.md), [latest.json](%slatest.json).\n", folder, folder)
	return b.String()
}

// Versions is what was measured beside this project.
func (r *Report) Versions() string {
	var b strings.Builder
	for _, k := range sortedKeys(r.Peers) {
		fmt.Fprintf(&b, "- %s %s\n", k, r.Peers[k])
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

func (r *Report) table(b *strings.Builder, keep func(Row) bool, name func(Row) string) {
	b.WriteString("| what | value | ratio | target | status |\n|---|---:|---|---|---|\n")
	var notes []string
	number := map[string]int{}
	for _, row := range r.Rows {
		if !keep(row) {
			continue
		}
		title := name(row)
		if row.Note != "" {
			if number[row.Note] == 0 {
				notes = append(notes, row.Note)
				number[row.Note] = len(notes)
			}
			title += fmt.Sprintf(" (%d)", number[row.Note])
		}
		target := ""
		if row.Target != nil {
			target = row.Target.String()
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", title, row.value(), row.ratio(), target, row.verdict())
	}
	for i, n := range notes {
		fmt.Fprintf(b, "\n(%d) %s\n", i+1, n)
	}
}

package report

import (
	"fmt"
	"strings"
)

// Text renders the rows for a terminal, and those with a target again at the end.
func (r *Report) Text() string {
	var b strings.Builder
	group := ""
	for _, row := range r.Rows {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		row.text(&b, row.Name)
	}
	b.WriteString("\nTo reach\n")
	for _, row := range r.Rows {
		if row.Target != nil {
			row.text(&b, row.title())
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Noise)
	return b.String()
}

// title is the row's name where the group is not above it.
func (row Row) title() string {
	if strings.Contains(row.Group, ": ") {
		return row.Group[strings.LastIndex(row.Group, ": ")+2:] + ": " + row.Name
	}
	return row.Name
}

func (row Row) text(b *strings.Builder, name string) {
	fmt.Fprintf(b, "  %-72s %18s", name, row.value())
	if s := row.ratio(); s != "" {
		fmt.Fprintf(b, "  %s", s)
	}
	if row.Target != nil {
		fmt.Fprintf(b, "  (target %s)", row.Target)
	}
	if row.Status != "" {
		fmt.Fprintf(b, "  %s", strings.ToUpper(row.verdict()))
	}
	b.WriteString("\n")
}

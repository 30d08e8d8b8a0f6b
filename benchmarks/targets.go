package main

import "github.com/ecotone-dev/ecotone/benchmarks/report"

func atLeast(bound float64) *report.Target {
	return &report.Target{Better: report.AtLeast, Bound: bound}
}

func atMost(bound float64) *report.Target {
	return &report.Target{Better: report.AtMost, Bound: bound}
}

// jsonTargets judge the rows of the Go + JSON guest.
var jsonTargets = map[string]*report.Target{
	nameWazeroNew:    atLeast(100),
	nameExtismNew:    atLeast(100),
	nameWtNew:        atLeast(100),
	nameWazeroChecks: atLeast(2),
	nameWithin:       atMost(1.6),
}

// expected are the rows with a target that a section adds. A section that ran out of time or
// failed has not added all of them; they are in the report all the same.
func (b *bench) expected() map[string][]report.Row {
	row := func(group, name string, t *report.Target) report.Row {
		return report.Unmeasured(group, name, report.FullOnly, "").Aim(t)
	}
	out := map[string][]report.Row{
		"parts": {
			row(groupParts, nameDecision+allocations, atMost(0)),
			row(groupParts, nameHostCall+allocations, atMost(0)),
		},
		"http": {row(groupHTTP, nameInvocation, atMost(0.25))},
		// These sections have one or two; their names are told apart by the group alone.
		"metering": {row(groupMetering, "", nil)},
		"cold":     {row(groupCold, "", nil)},
		"growth":   {row(groupGrowth, "", nil)},
		"noisy":    {row(groupNoisy, "", nil)},
	}
	for _, name := range []string{nameWazeroNew, nameWtNew, nameExtismNew, nameWazeroChecks, nameWithin} {
		out["fresh"] = append(out["fresh"], row(groupFresh+b.built.json.Name, name, jsonTargets[name]))
	}
	for _, m := range modes {
		out["http"] = append(out["http"], row(groupHTTP, throughputName(m, judgedConnections), atLeast(0.5)))
	}
	return out
}

// complete adds the rows with a target that are missing of the sections that were to run.
func (b *bench) complete(sections []section) {
	expected := b.expected()
	for _, s := range sections {
		for _, want := range expected[s.name] {
			if !b.has(want) {
				if want.Name == "" {
					want.Name = "the targets of this section"
				}
				b.Add(want)
			}
		}
	}
}

func (b *bench) has(want report.Row) bool {
	for _, row := range b.Rows {
		if row.Group == want.Group && (row.Name == want.Name || want.Name == "" && row.Target != nil) {
			return true
		}
	}
	return false
}

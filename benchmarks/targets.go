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
		"metering": {
			row(groupMetering, "metering, geometric mean over the kernels", atMost(1.2)),
			row(groupMetering, "metering, the worst kernel", atMost(1.5)),
		},
		"cold":   {row(groupCold, "restart with 200 biomes until ready", atLeast(10))},
		"growth": {row(groupGrowth, "p50 with 1,000 modules, 1,000,000 grants, 100,000 sessions against 1, 10, 10", atMost(1.5))},
		"noisy":  {row(groupNoisy, "others' p99 while another organisation spins", atMost(1))},
	}
	for _, name := range []string{nameWazeroNew, nameWtNew, nameExtismNew, nameWazeroChecks, nameWithin} {
		out["fresh"] = append(out["fresh"], row(groupFresh+b.built.json.Name, name, jsonTargets[name]))
	}
	for _, m := range modes {
		out["http"] = append(out["http"], row(groupHTTP, throughputName(m, judgedConnections), atLeast(0.5)))
	}
	return out
}

// complete adds the rows with a target that are missing of the sections that were to run. Where
// a section has named its own as it is measured, it has not lost them.
func (b *bench) complete(sections []section) {
	expected := b.expected()
	for _, s := range sections {
		var missing []report.Row
		for _, want := range expected[s.name] {
			if !b.has(want.Group, want.Name) {
				missing = append(missing, want)
			}
		}
		own := s.name == "fresh" || s.name == "http" || s.name == "parts"
		if len(missing) > 0 && len(missing) == len(expected[s.name]) && !own && b.has(missing[0].Group, "") {
			continue
		}
		for _, row := range missing {
			b.Add(row)
		}
	}
}

// has reports whether there is a row of that name in the group; of any name, one with a target.
func (b *bench) has(group, name string) bool {
	for _, row := range b.Rows {
		if row.Group == group && (row.Name == name || name == "" && row.Target != nil) {
			return true
		}
	}
	return false
}

package admission

import (
	"fmt"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Inspect reads the module and its manifest and returns everything that was found. The
// problems are in the order of their offsets.
func (in Inspector) Inspect(biome wasm.Original) *Report {
	module := biome.Module
	m, found := wasm.Read(module, in.Limits)
	i := &inspection{
		Inspector: in,
		module:    module,
		beside:    biome.Manifest,
		m:         m,
		report: &Report{
			Size:     len(module),
			Imports:  []Import{},
			Exports:  []Export{},
			Problems: []Problem{},
			Warnings: []Warning{},
		},
	}
	for _, p := range found {
		i.add(Problem{Code: p.Code, Offset: p.Offset, Section: p.Section, Message: p.Message, Hint: p.Hint})
	}
	if m != nil {
		i.report.Module = m
		i.manifest()
		i.chooseFace()
		i.imports()
		i.exports()
		i.start()
		i.segments()
		i.statistics()
		i.warnings()
	}
	return i.done()
}

// inspection is the state of one inspection.
type inspection struct {
	Inspector
	module []byte
	beside []byte // manifest that came beside the module, or nil
	m      *wasm.Module
	report *Report
	face   *abi.FaceInfo
}

func (i *inspection) add(p Problem) {
	switch n := len(i.report.Problems); {
	case n < MaxProblems-1:
		i.report.Problems = append(i.report.Problems, p)
	case n == MaxProblems-1:
		i.report.Problems = append(i.report.Problems, Problem{
			Code: p.Code, Offset: len(i.module), Message: "there are more problems; this list ends here",
		})
	}
}

// refuse adds a problem at an offset of a section.
func (i *inspection) refuse(code abi.Code, id wasm.SectionID, offset uint32, hint, format string, args ...any) {
	i.add(Problem{Code: code, Offset: int(offset), Section: id.String(), Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (i *inspection) done() *Report {
	slices.SortStableFunc(i.report.Problems, func(a, b Problem) int { return a.Offset - b.Offset })
	i.report.Accepted = len(i.report.Problems) == 0
	return i.report
}

// absent is where a thing that is missing would be: in the section, or at the end.
func (i *inspection) absent(id wasm.SectionID) uint32 {
	if s, ok := i.m.Section(id); ok {
		return s.Offset
	}
	return uint32(len(i.module))
}

func (i *inspection) statistics() {
	m := i.m
	s := &Statistics{
		Types: len(m.Types), Functions: len(m.Functions), Globals: len(m.Globals),
		ElementSegments: len(m.Elements), DataSegments: len(m.Data), Code: m.Uses,
	}
	tables := m.AllTables()
	s.Tables = len(tables)
	for _, t := range tables {
		s.TableEntries += int64(t.Limits.Min)
	}
	for _, d := range m.Data {
		s.DataBytes += int64(d.Init.Len())
	}
	for _, sec := range m.Sections {
		if sec.ID == wasm.SectionCustom {
			s.CustomSections++
		}
	}
	i.report.Statistics = s
	if len(m.Memories) > 0 {
		l := m.Memories[0].Limits
		i.report.Memory = &Memory{Min: int64(l.Min) * wasm.PageBytes, Max: int64(l.Max) * wasm.PageBytes}
	}
}

// warnings compares what the manifest asks for with what the module imports.
func (i *inspection) warnings() {
	r := i.report
	if r.Manifest == nil {
		return
	}
	imported := map[string]bool{}
	for _, im := range r.Imports {
		if im.Known && im.Module == abi.Module {
			imported[im.Name] = true
		}
	}
	warn := func(topic, hint, format string, args ...any) {
		r.Warnings = append(r.Warnings, Warning{topic, fmt.Sprintf(format, args...), hint})
	}
	if need := max(r.Reach, abi.ReachOwner); r.Declared > need && !imported["capability_invoke"] {
		warn("reach-unused", "declare no more than the module needs: environments with a lower ceiling will refuse it",
			"the manifest declares reach %s; the imports need %s", r.Declared, need)
	}
	requires := &r.Manifest.Requires
	for _, pair := range []struct {
		function string
		asked    int
		field    string
	}{
		{"capability_invoke", len(requires.Capabilities), "capabilities"},
		{"http_fetch", len(requires.Endpoints), "endpoints"},
		{"secret_hmac", len(requires.Secrets), "secrets"},
	} {
		if imported[pair.function] && pair.asked == 0 {
			warn("requires-empty", "name in requires."+pair.field+" what the module uses, or every call will be refused",
				"the module imports %s and the manifest requires no %s", pair.function, pair.field)
		}
	}
}

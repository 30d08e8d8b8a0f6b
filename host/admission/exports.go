package admission

import (
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Names of exports that the contract gives a meaning.
const (
	exportMemory     = abi.ExportMemory
	exportInitialize = abi.ExportInitialize
	exportStart      = abi.ExportStart
)

var (
	initializeType   = wasm.FuncType{}
	initializerTypes = map[string]wasm.FuncType{
		abi.ExportHaskell:      {Params: []wasm.ValType{wasm.I32, wasm.I32}},
		abi.ExportConstructors: initializeType,
	}
)

// capabilityTypes are the types an export that serves a capability may have.
func (i *inspection) capabilityTypes(export string) (out []wasm.FuncType) {
	if export == exportStart {
		return []wasm.FuncType{{}}
	}
	for _, results := range i.face.Results {
		out = append(out, wasm.FuncType{Results: valTypes(results)})
	}
	return out
}

// exports checks what the contract asks of the exports. Others are let be: nothing ever looks
// at them.
func (i *inspection) exports() {
	byName := make(map[string]*wasm.Export, len(i.m.Exports))
	for n := range i.m.Exports {
		e := &i.m.Exports[n]
		byName[e.Name] = e
		if strings.HasPrefix(e.Name, abi.ReservedPrefix) {
			i.refuseExport(e, abi.CodeNameReserved, "", "export %s: names that begin with %q are the host's", abi.Quote(e.Name), abi.ReservedPrefix)
		}
	}
	i.exportedMemory(byName[exportMemory])
	if e := byName[exportInitialize]; e != nil {
		i.report.Initialize = i.exportedFunction(e, initializeType)
	}
	for _, name := range i.face.Initializers {
		if e := byName[name]; e != nil && name != exportInitialize {
			i.report.Initialize = i.exportedFunction(e, initializerTypes[name]) || i.report.Initialize
		}
	}
	serves := map[string]abi.CapabilityRef{}
	if i.report.Manifest != nil {
		for n := range i.report.Manifest.Provides {
			d := &i.report.Manifest.Provides[n]
			serves[d.Export] = d.Ref
			if e := byName[d.Export]; e != nil {
				i.exportedFunction(e, i.capabilityTypes(d.Export)...)
				continue
			}
			if i.m.Unread(wasm.SectionExport) {
				continue
			}
			i.refuse(abi.CodeExportMissing, wasm.SectionExport, i.absent(wasm.SectionExport), "",
				"export %s, which serves %s, is missing; it must be a function %s", abi.Quote(d.Export), d.Ref, oneOf(i.capabilityTypes(d.Export)))
		}
	}
	for n := range i.m.Exports {
		e := &i.m.Exports[n]
		out := Export{Name: e.Name, Kind: e.Kind.String(), Capability: serves[e.Name]} // the last, of those that differ in arguments
		if t, ok := i.m.FuncType(e.Index); ok && e.Kind == wasm.KindFunc {
			out.Signature = t.String()
		}
		i.report.Exports = append(i.report.Exports, out)
	}
}

func (i *inspection) exportedMemory(e *wasm.Export) {
	switch {
	case e == nil && i.m.Unread(wasm.SectionExport):
	case e == nil:
		i.refuse(abi.CodeExportMissing, wasm.SectionExport, i.absent(wasm.SectionExport),
			"host functions read and write the memory under this name", "export %q is missing", exportMemory)
	case e.Kind != wasm.KindMemory:
		i.refuseExport(e, abi.CodeExportSignature, "", "export %q is a %s, not a memory", exportMemory, e.Kind)
	case e.Index < i.m.Imported(wasm.KindMemory):
		i.refuseExport(e, abi.CodeExportSignature, "", "export %q is an imported memory; the module must define it", exportMemory)
	}
}

// exportedFunction checks that an export is a function of one of some types that the module itself
// defines: an imported one would let the host call itself with no guest between.
func (i *inspection) exportedFunction(e *wasm.Export, want ...wasm.FuncType) bool {
	name := abi.Quote(e.Name)
	if e.Kind != wasm.KindFunc {
		i.refuseExport(e, abi.CodeExportSignature, "", "export %s: expected a function %s, got a %s", name, oneOf(want), e.Kind)
		return false
	}
	if e.Index < i.m.Imported(wasm.KindFunc) {
		i.refuseExport(e, abi.CodeExportSignature, "", "export %s is an imported function; the module must define it", name)
		return false
	}
	got, ok := i.m.FuncType(e.Index)
	fits := slices.ContainsFunc(want, func(t wasm.FuncType) bool { return t.Equal(got) })
	if ok && !fits {
		i.refuseExport(e, abi.CodeExportSignature, "", "export %s: expected %s, got %s", name, oneOf(want), got)
	}
	return ok && fits
}

func oneOf(types []wasm.FuncType) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = t.String()
	}
	return strings.Join(words, " or ")
}

// start refuses code that would run when the module is instantiated. There is one way to
// initialise, and it is the export _initialize: it is called with no authority and under a budget.
// A module made to be run as a program is refused where the face has no commands; where it has, the
// program is the whole of the module, and nothing of it runs before the capability does.
func (i *inspection) start() {
	const hint = "initialise in _initialize: -buildmode=c-shared (Go), -mexec-model=reactor (C), --exportStart _initialize (AssemblyScript)"
	if s := i.m.Start; s != nil {
		i.refuse(abi.CodeStartRefused, wasm.SectionStart, s.Offset, hint, "the module has a start section")
	}
	e := i.exportNamed(exportStart)
	switch {
	case e == nil:
	case i.face.Face == abi.FaceNative:
		i.refuseExport(e, abi.CodeStartRefused, hint+`; or say "abi": "`+abi.WASIModule+`" for a program that reads its input from stdin`,
			"the module exports %q: it is a program, not a biome", exportStart)
	case i.face.Starts:
		i.startBeside(e)
	case i.face.Commands && i.exportNamed(exportInitialize) != nil:
		i.refuseExport(e, abi.CodeStartRefused, "build a program or a reactor, not both",
			"the module exports %q and %q", exportStart, exportInitialize)
	case i.face.Commands && i.report.Manifest != nil:
		for _, d := range i.report.Manifest.Provides {
			if d.Export != exportStart {
				i.refuseExport(e, abi.CodeStartRefused, "name the export "+exportStart+", with arguments that tell capabilities apart; or build a reactor",
					"the module is a program, and its manifest serves %s with another export, %s", d.Ref, abi.Quote(d.Export))
				break
			}
		}
	}
}

// startBeside refuses a start that serves a capability in a module that has an initialiser: it would
// initialise again what is.
func (i *inspection) startBeside(e *wasm.Export) {
	if i.report.Manifest == nil {
		return
	}
	for _, name := range i.face.Initializers {
		if i.exportNamed(name) == nil {
			continue
		}
		for _, d := range i.report.Manifest.Provides {
			if d.Export == exportStart {
				i.refuseExport(e, abi.CodeStartRefused, "build a program or a reactor, not both",
					"the module exports %q, which serves %s, and %q", exportStart, d.Ref, name)
				return
			}
		}
	}
}

func (i *inspection) exportNamed(name string) *wasm.Export {
	for n := range i.m.Exports {
		if i.m.Exports[n].Name == name {
			return &i.m.Exports[n]
		}
	}
	return nil
}

func (i *inspection) refuseExport(e *wasm.Export, code abi.Code, hint, format string, args ...any) {
	i.refuse(code, wasm.SectionExport, e.Offset, hint, format, args...)
}

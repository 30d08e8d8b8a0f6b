package admission

import (
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Names of exports that the contract gives a meaning.
const (
	exportMemory     = "memory"
	exportInitialize = "_initialize"
	exportStart      = "_start"
)

var (
	initializeType = wasm.FuncType{}
	capabilityType = wasm.FuncType{Results: []wasm.ValType{wasm.I32}}
)

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
	serves := map[string]abi.CapabilityRef{}
	if i.report.Manifest != nil {
		for n := range i.report.Manifest.Provides {
			d := &i.report.Manifest.Provides[n]
			serves[d.Export] = d.Ref
			if e := byName[d.Export]; e != nil {
				i.exportedFunction(e, capabilityType)
				continue
			}
			if i.m.Unread(wasm.SectionExport) {
				continue
			}
			i.refuse(abi.CodeExportMissing, wasm.SectionExport, i.absent(wasm.SectionExport), "",
				"export %s, which serves %s, is missing; it must be a function %s", abi.Quote(d.Export), d.Ref, capabilityType)
		}
	}
	for n := range i.m.Exports {
		e := &i.m.Exports[n]
		out := Export{Name: e.Name, Kind: e.Kind.String(), Capability: serves[e.Name]}
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

// exportedFunction checks that an export is a function of a type that the module itself
// defines: an imported one would let the host call itself with no guest between.
func (i *inspection) exportedFunction(e *wasm.Export, want wasm.FuncType) bool {
	name := abi.Quote(e.Name)
	if e.Kind != wasm.KindFunc {
		i.refuseExport(e, abi.CodeExportSignature, "", "export %s: expected a function %s, got a %s", name, want, e.Kind)
		return false
	}
	if e.Index < i.m.Imported(wasm.KindFunc) {
		i.refuseExport(e, abi.CodeExportSignature, "", "export %s is an imported function; the module must define it", name)
		return false
	}
	got, ok := i.m.FuncType(e.Index)
	if ok && !got.Equal(want) {
		i.refuseExport(e, abi.CodeExportSignature, "", "export %s: expected %s, got %s", name, want, got)
	}
	return ok && got.Equal(want)
}

// start refuses code that would run when the module is instantiated, and modules made to be
// run as a program. There is one way to initialise, and it is the export _initialize: it is
// called with no authority and under a budget.
func (i *inspection) start() {
	const hint = "initialise in _initialize: -buildmode=c-shared (Go), -mexec-model=reactor (C), --exportStart _initialize (AssemblyScript)"
	if s := i.m.Start; s != nil {
		i.refuse(abi.CodeStartRefused, wasm.SectionStart, s.Offset, hint, "the module has a start section")
	}
	for n := range i.m.Exports {
		if e := &i.m.Exports[n]; e.Name == exportStart {
			i.refuseExport(e, abi.CodeStartRefused, hint, "the module exports %q: it is a program, not a biome", exportStart)
		}
	}
}

func (i *inspection) refuseExport(e *wasm.Export, code abi.Code, hint, format string, args ...any) {
	i.refuse(code, wasm.SectionExport, e.Offset, hint, format, args...)
}

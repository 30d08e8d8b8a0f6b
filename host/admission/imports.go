package admission

import (
	"strings"
	"unicode"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// imports holds every import against the tables of the module's face, the only doors a module
// has (H1).
func (i *inspection) imports() {
	for n := range i.m.Imports {
		im := &i.m.Imports[n]
		seen := Import{Module: im.Module, Name: im.Name, Kind: im.Kind.String()}
		var got wasm.FuncType
		if im.Kind == wasm.KindFunc && int64(im.Type) < int64(len(i.m.Types)) {
			got = i.m.Types[im.Type]
			seen.Signature = got.String()
		}
		row, known := i.face.Import(im.Module, im.Name)
		want, reach := funcType(row), row.Reach
		switch other, mixed := i.otherFace(im); {
		case reservedImport(im):
			i.refuseImport(im, abi.CodeNameReserved, "this host speaks "+abi.Module,
				"import %s of %s: names that begin with %q are the host's", abi.Quote(im.Name), abi.Quote(im.Module), abi.ReservedPrefix)
		case mixed:
			i.refuseImport(im, abi.CodeFaceMixed, mixedHint(other),
				"import %s of %s belongs to %s; the manifest says that this is %s", abi.Quote(im.Name), abi.Quote(im.Module), other.Title, i.face.Title)
		case !known:
			i.refuseImport(im, abi.CodeImportUnknown, i.unknownHint(im),
				"import %s of %s is not in the ABI", abi.Quote(im.Name), abi.Quote(im.Module))
		case im.Kind != wasm.KindFunc:
			i.refuseImport(im, abi.CodeImportSignature, "",
				"import %s of %s: expected a function %s, got a %s", abi.Quote(im.Name), abi.Quote(im.Module), want, im.Kind)
		case seen.Signature == "":
			// The type does not exist, which the reader has listed.
		case !got.Equal(want):
			i.refuseImport(im, abi.CodeImportSignature, "",
				"import %s of %s: expected %s, got %s", abi.Quote(im.Name), abi.Quote(im.Module), want, got)
		default:
			seen.Known, seen.Reach = true, reach
			i.report.Reach = max(i.report.Reach, reach)
			i.reach(im, reach)
		}
		i.report.Imports = append(i.report.Imports, seen)
	}
}

// reach refuses a host function that no capability of the manifest declares to need (X10).
func (i *inspection) reach(im *wasm.Import, reach abi.Reach) {
	if declared := i.report.Declared; i.report.Manifest != nil && reach > declared {
		i.refuseImport(im, abi.CodeImportAboveReach, "declare reach "+reach.String()+" for the capability that needs it, or do without",
			"import %s has reach %s; the manifest declares %s at most", abi.Quote(im.Name), reach, declared)
	}
}

func (i *inspection) refuseImport(im *wasm.Import, code abi.Code, hint, format string, args ...any) {
	i.refuse(code, wasm.SectionImport, im.Offset, hint, format, args...)
}

// funcType is a signature of the contract as the reader's.
func funcType(s abi.Signature) wasm.FuncType {
	return wasm.FuncType{Params: valTypes(s.Params), Results: valTypes(s.Results)}
}

func valTypes(in []abi.ValueType) (out []wasm.ValType) {
	for _, t := range in {
		out = append(out, wasm.ValType(t))
	}
	return out
}

// reservedImport reports names that only the host may add to a module, other versions of the
// ABI among them (S2).
func reservedImport(im *wasm.Import) bool {
	return im.Module != abi.Module && strings.HasPrefix(im.Module, strings.TrimSuffix(abi.ReservedPrefix, "_")) ||
		strings.HasPrefix(im.Name, abi.ReservedPrefix)
}

// foreign are import modules of other hosts, and what to do about them.
var foreign = []struct{ module, hint string }{
	{"env", "a symbol was left undefined when linking, or the module was built for another host"},
	{"wasi_unstable", "an old snapshot of WASI: build for " + abi.WASIModule},
	{"wasi", "WASI threads are not accepted: build without threads"},
	{"wasi:", "WASI 0.2 is for components: build a core module for " + abi.WASIModule},
	{"wasi_", "build for " + abi.WASIModule},
	{"go", "built for a browser: use GOOS=wasip1 and -buildmode=c-shared"},
	{"gojs", "built for a browser: use GOOS=wasip1 and -buildmode=c-shared"},
	{"wbg", "built with wasm-bindgen for JavaScript: export plain functions instead"},
	{"__wbindgen", "built with wasm-bindgen for JavaScript: export plain functions instead"},
	{"extism:host/user", "an Extism plug-in that needs functions of the program it was written for, which are not there"},
	{"extism:", "the plug-in interface has no such function; a manifest that says \"abi\": \"extism:host/env\" has those of its kernel"},
}

// outsideWASI says why functions of preview 1 are not in the subset.
var outsideWASI = []struct{ prefix, hint string }{
	{"sock_", "there are no sockets: use http_fetch"},
	{"path_", "there are no paths: use the file functions of " + abi.Module + orForeign},
	{"fd_", "there are no files behind descriptors: use the file functions of " + abi.Module + orForeign},
	{"proc_raise", "there are no signals"},
}

const orForeign = `, or say "abi": "` + abi.WASIModule + `" in the manifest of a program that was written for WASI alone`

func (i *inspection) unknownHint(im *wasm.Import) string {
	switch im.Module {
	case abi.Module:
		return "the functions of " + abi.Module + " are listed in the ABI reference"
	case abi.WASIModule:
		if i.face.Foreign {
			return "WASI preview 1 has no such function"
		}
		for _, o := range outsideWASI {
			if strings.HasPrefix(im.Name, o.prefix) {
				return o.hint
			}
		}
		return "only a small part of WASI preview 1 is there; the ABI reference lists it"
	}
	for _, known := range []string{abi.Module, abi.WASIModule} {
		if looksLike(im.Module, known) {
			return "the name looks like " + known + " and is another"
		}
	}
	for _, f := range foreign {
		if prefix := strings.HasSuffix(f.module, ":") || strings.HasSuffix(f.module, "_") || strings.HasPrefix(f.module, "__"); im.Module == f.module || prefix && strings.HasPrefix(im.Module, f.module) {
			return f.hint
		}
	}
	return i.face.Title + " may import from " + strings.Join(i.face.Modules, " and ") + " only"
}

// looksLike reports whether a name reads like another without being it: case, white space and
// invisible characters aside, with any character outside ASCII standing for any other.
func looksLike(name, known string) bool {
	if name == known {
		return false
	}
	var folded []rune
	for _, r := range name {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			continue
		}
		folded = append(folded, unicode.ToLower(r))
	}
	if len(folded) != len(known) {
		return false
	}
	for i, r := range folded {
		if r < unicode.MaxASCII && r != rune(known[i]) {
			return false
		}
	}
	return true
}

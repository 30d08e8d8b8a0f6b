package abi

import "slices"

// Face names the set of doors a module was built for. It is the import module that the
// interface's own functions are in, and the `abi` of a manifest.
type Face string

// The faces.
const (
	FaceNative Face = Version           // Ecotone's own
	FaceWASI   Face = WASIModule        // WASI preview 1: programs and reactors written for no host in particular
	FaceExtism Face = "extism:host/env" // Extism plug-ins
)

// Exports with a meaning of their own.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize" // () -> (), run once, without authority
	ExportStart      = "_start"      // () -> (), the whole of a command

	ExportHaskell      = "hs_init"           // (i32, i32) -> (), starts the Haskell runtime of a plug-in
	ExportConstructors = "__wasm_call_ctors" // () -> (), initialises a plug-in that has no ExportInitialize
)

// FaceInfo is one row of the table of faces.
type FaceInfo struct {
	Face    Face
	Title   string
	Modules []string      // the import modules it may import from
	Results [][]ValueType // what an export that serves a capability may return; it takes nothing
	// Commands: a capability's export may be [ExportStart]. Such a module has no initialiser, and
	// its capabilities may have arguments.
	Commands bool
	// Starts: a capability's export may be [ExportStart] beside others that are not. Then the module has no
	// initialiser.
	Starts bool
	// Initializers are the exports that initialise; none is [ExportInitialize].
	Initializers []string
	// Foreign: the interface is not Ecotone's own. Its functions do what host functions do by
	// calling them, and its capabilities may say how their input and output are encoded.
	Foreign bool
}

var faceTable = []FaceInfo{
	{Face: FaceNative, Title: "an Ecotone biome", Modules: []string{Module, WASIModule}, Results: [][]ValueType{{I32}}},
	{Face: FaceWASI, Title: "a WASI program", Modules: []string{WASIModule}, Results: [][]ValueType{{}, {I32}}, Commands: true, Foreign: true},
	{
		Face: FaceExtism, Title: "an Extism plug-in", Modules: []string{ExtismModule, WASIModule}, Results: [][]ValueType{{}, {I32}},
		Starts: true, Initializers: []string{ExportInitialize, ExportHaskell, ExportConstructors}, Foreign: true,
	},
}

// Faces returns the table in its documented order. The caller must not change it.
func Faces() []FaceInfo { return faceTable }

// Info finds a face's row; false: this host does not have the face. The empty face is [FaceNative].
func (f Face) Info() (*FaceInfo, bool) {
	if f == "" {
		f = FaceNative
	}
	for i := range faceTable {
		if faceTable[i].Face == f {
			return &faceTable[i], true
		}
	}
	return nil, false
}

// Foreign reports whether the interface is not Ecotone's own.
func (f Face) Foreign() bool {
	row, ok := f.Info()
	return ok && row.Foreign
}

// Imports reports whether the face's modules may import from a module.
func (f *FaceInfo) Imports(module string) bool { return slices.Contains(f.Modules, module) }

// Encoding says how a foreign guest's bytes stand for the JSON that callers see. The empty word
// is [EncodingJSON].
type Encoding string

const (
	// EncodingJSON: the bytes are the JSON value.
	EncodingJSON Encoding = "json"
	// EncodingText: the JSON value is a string and the bytes are its text in UTF-8.
	EncodingText Encoding = "text"
	// EncodingBase64: the JSON value is a string, and what it decodes to are the bytes.
	EncodingBase64 Encoding = "base64"
)

// Encodings returns the vocabulary.
func Encodings() []Encoding { return []Encoding{EncodingJSON, EncodingText, EncodingBase64} }

// Valid reports whether the word is in the vocabulary, or empty.
func (e Encoding) Valid() bool { return e == "" || slices.Contains(Encodings(), e) }

// Signature is the type of a function that a module imports.
type Signature struct {
	Params, Results []ValueType
	Reach           Reach    // of a host function; 0 for what only calls host functions, or none
	Through         []string // host functions that it calls, if it is none itself
}

// Import finds the function that a module of the face imports, and its type. known is false for
// what is not there.
func (f *FaceInfo) Import(module, name string) (s Signature, known bool) {
	if !f.Imports(module) {
		return Signature{}, false
	}
	table := importTables[module]
	if table == nil {
		return Signature{}, false
	}
	return table(f, name)
}

// importTables finds functions by the module they are in.
var importTables = map[string]func(*FaceInfo, string) (Signature, bool){
	Module:       hostSignature,
	WASIModule:   wasiSignature,
	ExtismModule: extismSignature,
}

func hostSignature(_ *FaceInfo, name string) (Signature, bool) {
	f, ok := FunctionByName(name)
	if !ok {
		return Signature{}, false
	}
	return Signature{Params: typesOf(f.Params), Results: []ValueType{I64}, Reach: f.Reach}, true
}

func wasiSignature(face *FaceInfo, name string) (Signature, bool) {
	f, ok := WASIFunctionByName(name)
	if !ok || !face.Foreign && !f.Native {
		return Signature{}, false
	}
	return f.Signature(), true
}

func extismSignature(_ *FaceInfo, name string) (Signature, bool) {
	f, ok := ExtismFunctionByName(name)
	if !ok {
		return Signature{}, false
	}
	return f.Signature(), true
}

func typesOf(params []Param) []ValueType {
	out := make([]ValueType, len(params))
	for i, p := range params {
		out[i] = p.Type
	}
	return out
}

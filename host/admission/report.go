package admission

import (
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// MaxProblems bounds how many problems a report lists. A last one says that there are more.
const MaxProblems = 200

// Problem is one reason to refuse a module.
type Problem struct {
	Code    abi.Code `json:"code"`
	Offset  int      `json:"offset"`            // byte offset in the module
	Section string   `json:"section,omitempty"` // name of the section the offset lies in; "manifest" for one beside the module
	Pointer string   `json:"pointer,omitempty"` // JSON pointer into the manifest
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
}

// Warning is something to look at that is no reason to refuse.
type Warning struct {
	Topic   string `json:"topic"` // stable name of the check
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Import is one import of the module as the ABI knows it.
type Import struct {
	Module    string    `json:"module"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Signature string    `json:"signature,omitempty"`
	Reach     abi.Reach `json:"reach,omitzero"` // of a host function; absent for WASI and for what is refused
	Known     bool      `json:"known"`          // in the host-function table or the WASI subset, of the right kind and type
}

// Export is one export of the module.
type Export struct {
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`
	Signature  string            `json:"signature,omitempty"`
	Capability abi.CapabilityRef `json:"capability,omitempty"` // that the manifest serves with it
}

// Memory is the module's memory in bytes; Max is 0 when the module sets none.
type Memory struct {
	Min int64 `json:"min"`
	Max int64 `json:"max,omitempty"`
}

// Statistics are the counts that limits are about.
type Statistics struct {
	Types           int       `json:"types"`
	Functions       int       `json:"functions"`
	Globals         int       `json:"globals"`
	Tables          int       `json:"tables"`
	TableEntries    int64     `json:"tableEntries"`
	ElementSegments int       `json:"elementSegments"`
	DataSegments    int       `json:"dataSegments"`
	DataBytes       int64     `json:"dataBytes"`
	CustomSections  int       `json:"customSections"`
	Code            wasm.Uses `json:"code"`
}

// Report is what an inspection found. Its JSON form is stable: fields are added, never
// renamed or given another meaning.
type Report struct {
	Accepted   bool          `json:"accepted"`
	Digest     string        `json:"digest,omitempty"` // [wasm.Digest]; absent without exactly one manifest
	Size       int           `json:"size"`
	Manifest   *abi.Manifest `json:"manifest,omitempty"`
	Declared   abi.Reach     `json:"declaredReach,omitzero"` // highest reach the manifest declares
	Reach      abi.Reach     `json:"reach,omitzero"`         // highest reach of the host functions imported
	Initialize bool          `json:"initialize"`             // exports _initialize
	Memory     *Memory       `json:"memory,omitempty"`
	Imports    []Import      `json:"imports"`
	Exports    []Export      `json:"exports"`
	Statistics *Statistics   `json:"statistics,omitempty"`
	Problems   []Problem     `json:"problems"`
	Warnings   []Warning     `json:"warnings"`

	// Face is the manifest's, or without one that can be read what the imports look like.
	Face abi.Face `json:"-"`
	// ManifestBytes is the manifest as uploaded, not part of the JSON form.
	ManifestBytes []byte `json:"-"`
	// Module is the module's structure, for what comes after admission; nil when there is none.
	Module *wasm.Module `json:"-"`
}

// Inspector inspects modules. It is safe for concurrent use.
type Inspector struct {
	// Limits are what the module is held to: [UploadLimits] at upload.
	Limits abi.Limits
	// Schema compiles one JSON Schema of the manifest and says what is wrong with it; nil skips
	// that check. An [abi.Error] keeps its message, pointer and hint.
	Schema func(json.RawMessage) error
}

// Inspect is [Inspector.Inspect] of a module that carries its manifest, without a schema compiler.
func Inspect(module []byte, limits abi.Limits) *Report {
	return Inspector{Limits: limits}.Inspect(wasm.Original{Module: module})
}

// UploadLimits returns limits for an upload: what is judged at upload and by the server as
// given, and each limit an environment sets at its hard maximum, since environments judge
// again before they run anything.
func UploadLimits(configured abi.Limits) abi.Limits {
	for _, row := range abi.LimitTable() {
		if row.Scope == abi.ScopeEnvironment && row.Hard > 0 {
			configured[row.Limit] = row.Hard
		}
	}
	return configured
}

// Err is nil for an accepted module, otherwise an [abi.Error] with [abi.CodeModuleRefused]
// that says how many problems there are and the first of them. The report has all.
func (r *Report) Err() *abi.Error {
	if r.Accepted {
		return nil
	}
	p := r.Problems[0]
	e := abi.Errorf(abi.CodeModuleRefused, "the module is refused for %d reasons; the first, %s at byte %d: %s", len(r.Problems), p.Code, p.Offset, p.Message)
	if len(r.Problems) == 1 {
		e = abi.Errorf(abi.CodeModuleRefused, "the module is refused: %s at byte %d: %s", p.Code, p.Offset, p.Message)
	}
	return e.WithHint(p.Hint)
}

package wasm

import (
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
)

// MaxProblems bounds how many problems one reading lists. A last one says that there are
// more.
const MaxProblems = 100

// Problem is one reason to refuse a module.
type Problem struct {
	Code    abi.Code `json:"code"`
	Offset  int      `json:"offset"`            // byte offset in the module
	Section string   `json:"section,omitempty"` // name of the section the offset lies in
	Message string   `json:"message"`           // public; module text is quoted
	Hint    string   `json:"hint,omitempty"`
}

func (p Problem) String() string {
	where := fmt.Sprintf("at byte %d", p.Offset)
	if p.Section != "" {
		where += " (" + p.Section + ")"
	}
	return fmt.Sprintf("%s %s: %s", p.Code, where, p.Message)
}

// problems collects what is wrong, up to the bound.
type problems struct {
	list     []Problem
	features map[string]bool // proposals that were named already: once each is enough
}

func (p *problems) add(code abi.Code, section string, offset int, hint, format string, args ...any) {
	switch n := len(p.list); {
	case n < MaxProblems-1:
		p.list = append(p.list, Problem{code, offset, section, fmt.Sprintf(format, args...), hint})
	case n == MaxProblems-1:
		p.list = append(p.list, Problem{code, offset, section, "there are more problems; this list ends here", ""})
	}
}

// full reports that nothing more will be listed, so that reading may stop.
func (p *problems) full() bool { return len(p.list) >= MaxProblems }

// feature refuses a proposal by name, once.
func (p *problems) feature(section string, offset int, name, what string) {
	if p.features[name] {
		return
	}
	if p.features == nil {
		p.features = make(map[string]bool)
	}
	p.features[name] = true
	p.add(abi.CodeModuleFeature, section, offset, "build for WebAssembly 2.0 without it",
		"%s belongs to the %s proposal, which is not accepted", what, name)
}

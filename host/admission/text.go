package admission

import (
	"fmt"
	"io"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// WriteText writes the report for a person at a terminal. Names that come from the module are
// quoted, so that nothing in them reaches the terminal as a control character.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	switch {
	case r.Accepted:
		fmt.Fprintf(&b, "accepted: %s %s, %d bytes\n", r.Manifest.Name, r.Manifest.Version, r.Size)
	case len(r.Problems) == 1:
		fmt.Fprintf(&b, "refused: 1 problem, %d bytes\n", r.Size)
	default:
		fmt.Fprintf(&b, "refused: %d problems, %d bytes\n", len(r.Problems), r.Size)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  %s at byte %d", p.Code, p.Offset)
		if p.Section != "" {
			fmt.Fprintf(&b, " (%s)", p.Section)
		}
		if p.Pointer != "" {
			fmt.Fprintf(&b, " %s", abi.Quote(p.Pointer))
		}
		fmt.Fprintf(&b, ": %s\n", p.Message)
		hint(&b, p.Hint)
	}
	for _, wn := range r.Warnings {
		fmt.Fprintf(&b, "  warning, %s: %s\n", wn.Topic, wn.Message)
		hint(&b, wn.Hint)
	}
	if r.Digest != "" {
		fmt.Fprintf(&b, "digest: %s\n", r.Digest)
	}
	if r.Manifest != nil {
		need := "none"
		if r.Reach.Valid() {
			need = r.Reach.String()
		}
		fmt.Fprintf(&b, "reach: %s declared, %s imported\n", r.Declared, need)
	}
	for _, im := range r.Imports {
		mark := "refused"
		switch {
		case im.Known && im.Reach.Valid():
			mark = im.Reach.String()
		case im.Known:
			mark = "wasi"
		}
		fmt.Fprintf(&b, "import: %s %s %s [%s]\n", abi.Quote(im.Module), abi.Quote(im.Name), im.what(), mark)
	}
	for _, e := range r.Exports {
		if e.Capability != "" {
			fmt.Fprintf(&b, "capability: %s by export %s\n", e.Capability, abi.Quote(e.Name))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (im Import) what() string {
	if im.Signature != "" {
		return im.Signature
	}
	return im.Kind
}

func hint(b *strings.Builder, text string) {
	if text != "" {
		fmt.Fprintf(b, "      hint: %s\n", text)
	}
}

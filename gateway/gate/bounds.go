package gate

import "github.com/ecotone-dev/ecotone/abi"

// Bound is one of what a label or a ceiling is composed of.
type Bound struct {
	Of    string             `json:"of"`
	Level abi.Classification `json:"level"`
}

// Bounds names what an invocation's starting label is the join of, and what its ceiling is the meet of: by
// which the check of the classification passed, or failed (X69, X22). s and f are what was decided from.
func Bounds(s *Snapshot, f *Facts) (labels, ceilings []Bound) {
	v := look(s, f)
	if v.env == nil {
		return nil, nil
	}
	add := func(to *[]Bound, of string, level abi.Classification) {
		if level.Valid() {
			*to = append(*to, Bound{of, level})
		}
	}
	add(&labels, "space", v.space.Floor)
	add(&labels, "session", f.mark())
	add(&labels, "declaration", f.Declared)
	add(&ceilings, "environment", v.env.MaxData)
	if o := s.Orgs.At(f.Org).Overrides.At(f.Environment); o != nil {
		add(&ceilings, "override", o.MaxData)
	}
	add(&ceilings, "space", v.space.Clearance)
	add(&ceilings, "session", f.Clearance)
	if v.parent != nil {
		add(&labels, "parent", f.Parent.Label)
		add(&ceilings, "parent", v.parent.Ceiling)
	}
	return labels, ceilings
}

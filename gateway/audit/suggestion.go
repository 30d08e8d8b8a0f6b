package audit

import "github.com/ecotone-dev/ecotone/abi"

// Suggestion is something that would change a decision, or let a refused host call through (X46), as it
// was told: its members are those of the problem document's.
type Suggestion struct {
	Kind           string             `json:"kind"` // request-grant, switch-environment …
	Subject        string             `json:"subject,omitempty"`
	Capability     string             `json:"capability,omitempty"`
	Environment    string             `json:"environment,omitempty"`
	Space          string             `json:"space,omitempty"`
	Grant          string             `json:"grant,omitempty"`
	Biome          string             `json:"biome,omitempty"`
	Call           string             `json:"call,omitempty"`
	Endpoint       string             `json:"endpoint,omitempty"`
	Secret         string             `json:"secret,omitempty"`
	URL            string             `json:"url,omitempty"`
	Globs          []string           `json:"globs,omitempty"`
	Classification abi.Classification `json:"classification,omitzero"`
	Seconds        int64              `json:"seconds,omitempty"`
	Detail         string             `json:"detail,omitempty"`
}

func settleSuggestions(all []Suggestion) []Suggestion {
	return list(all, func(s *Suggestion) {
		texts(&s.Kind, &s.Subject, &s.Capability, &s.Environment, &s.Space, &s.Grant, &s.Biome, &s.Call, &s.Endpoint, &s.Secret, &s.URL, &s.Detail)
		s.Globs = list(s.Globs, func(g *string) { texts(g) })
	})
}

func (o *object) suggestions(all []Suggestion) {
	if len(all) == 0 {
		return
	}
	o.plain = o.plain && len(all) <= maxList
	o.name(`"suggestions":`)
	o.b = append(o.b, '[')
	for i := range all {
		s := &all[i]
		o.plain = o.plain && len(s.Globs) <= maxList
		o.next(i)
		o.str(`"kind":`, s.Kind)
		o.strIf(`"subject":`, s.Subject)
		o.strIf(`"capability":`, s.Capability)
		o.strIf(`"environment":`, s.Environment)
		o.strIf(`"space":`, s.Space)
		o.strIf(`"grant":`, s.Grant)
		o.strIf(`"biome":`, s.Biome)
		o.strIf(`"call":`, s.Call)
		o.strIf(`"endpoint":`, s.Endpoint)
		o.strIf(`"secret":`, s.Secret)
		o.strIf(`"url":`, s.URL)
		o.strs(`"globs":`, s.Globs)
		o.label(`"classification":`, s.Classification)
		o.intIf(`"seconds":`, s.Seconds)
		o.strIf(`"detail":`, s.Detail)
		o.b = append(o.b, '}')
	}
	o.b = append(o.b, ']')
}

func (o *object) strs(n string, all []string) {
	if len(all) == 0 {
		return
	}
	o.name(n)
	o.b = append(o.b, '[')
	for i, s := range all {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.text(s)
	}
	o.b = append(o.b, ']')
}

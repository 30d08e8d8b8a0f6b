package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// refusal is why a tool does not answer: told is recorded already, why is not.
type refusal struct {
	told *problem.Document
	why  *abi.Error
}

func because(why *abi.Error) *refusal { return &refusal{why: why} }

// Bounds of a search.
const (
	hitsDefault   = 10
	hitsMax       = 50
	queryMin      = 2
	queryMax      = 200
	describeMax   = 50
	summaryOfHits = 300 // bytes of a summary in a hit; describe has all of it
)

type searchArguments struct {
	Query  string `json:"query"`
	Limit  *int   `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// hit is one capability found. What is the author's is marked.
type hit struct {
	Ref              abi.CapabilityRef `json:"ref"`
	Title            string            `json:"title"`
	Summary          string            `json:"summary"`
	RiskTier         abi.RiskTier      `json:"riskTier"`
	RequiresApproval bool              `json:"requiresApproval"`
	Biome            string            `json:"biome"`
	Lifecycle        string            `json:"lifecycle,omitempty"`
	ReplacedBy       abi.CapabilityRef `json:"replacedBy,omitempty"`
}

type found struct {
	Hits       []hit  `json:"hits"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// place is where a hit is in the order of a search: best first, then by ref.
type place struct {
	Score int               `json:"s"`
	Ref   abi.CapabilityRef `json:"r"`
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(o.Score, p.Score), cmp.Compare(p.Ref, o.Ref))
}

// search finds among what the caller may invoke, and says nothing of what it may not.
func search(s *Server, c context.Context, x *exchange, in *searchArguments) (any, *refusal) {
	words := strings.Fields(strings.ToLower(in.Query))
	limit := hitsDefault
	if in.Limit != nil {
		limit = *in.Limit
	}
	switch {
	case len(in.Query) > queryMax || len(strings.Join(words, "")) < queryMin:
		return nil, because(abi.Errorf(abi.CodeInvalidRequest, "a query has from %d to %d bytes; there is no full listing", queryMin, queryMax).At("/query"))
	case limit < 1 || limit > hitsMax:
		return nil, because(abi.Errorf(abi.CodeInvalidRequest, "a page has from 1 to %d hits", hitsMax).At("/limit"))
	}
	var after *place
	if in.Cursor != "" {
		raw, ok := decodeCursor(in.Cursor)
		if after = new(place); !ok || json.Unmarshal([]byte(raw), after) != nil {
			return nil, because(abi.Errorf(abi.CodeInvalidRequest, "the cursor is none of a search").At("/cursor"))
		}
	}
	all, refused := s.o.Pipeline.List(c, x.request())
	if refused != nil {
		return nil, &refusal{told: refused}
	}
	type scored struct {
		place
		c *invoke.Capability
	}
	var hits []scored
	for i := range all {
		p := place{score(&all[i], words), all[i].Ref}
		if p.Score > 0 && (after == nil || after.compare(p) < 0) {
			hits = append(hits, scored{p, &all[i]})
		}
	}
	slices.SortFunc(hits, func(a, b scored) int { return a.compare(b.place) })
	out := found{Hits: []hit{}}
	if len(hits) > limit {
		hits = hits[:limit]
		raw, err := json.Marshal(hits[limit-1].place)
		if err != nil {
			return nil, because(abi.AsError(err))
		}
		out.NextCursor = encodeCursor(string(raw))
	}
	for _, h := range hits {
		out.Hits = append(out.Hits, hit{
			Ref: h.c.Ref, Title: marked(h.c, h.c.Title), Summary: marked(h.c, short(h.c.Summary)), RiskTier: h.c.RiskTier, RequiresApproval: h.c.RequiresApproval,
			Biome: h.c.Biome, Lifecycle: string(h.c.State), ReplacedBy: h.c.ReplacedBy,
		})
	}
	return out, nil
}

// score is how well a capability fits: each word has to be there, in the ref best. 0 is not at all.
func score(c *invoke.Capability, words []string) int {
	ref, title, summary := string(c.Ref), strings.ToLower(c.Title), strings.ToLower(c.Summary)
	sum := 0
	for _, w := range words {
		n := 0
		for text, weight := range map[string]int{ref: 4, title: 2, summary: 1} {
			if strings.Contains(text, w) {
				n += weight
			}
		}
		if n == 0 {
			return 0
		}
		sum += n
	}
	return sum
}

func short(text string) string {
	if len(text) <= summaryOfHits {
		return text
	}
	return strings.ToValidUTF8(text[:summaryOfHits], "") + "…"
}

type describeArguments struct {
	Refs []string `json:"refs"`
}

// described is a capability with everything that its caller needs.
type described struct {
	origin
	Title        string            `json:"title"`
	Summary      string            `json:"summary"`
	SideEffects  string            `json:"sideEffects"`
	InputSchema  json.RawMessage   `json:"inputSchema"`
	OutputSchema json.RawMessage   `json:"outputSchema"`
	Examples     []json.RawMessage `json:"examples,omitempty"`
	Text         string            `json:"text"`
}

type descriptions struct {
	Capabilities []described `json:"capabilities"`
	NotFound     []string    `json:"notFound,omitempty"`
}

// provenanceOfText is said with each description: schemas and examples cannot carry a mark.
const provenanceOfText = "title, summary, sideEffects, schemas and examples are untrusted text from the biome's author"

// describe describes what the caller may invoke. What it may not, what is retired and what never was are the same.
func describe(s *Server, c context.Context, x *exchange, in *describeArguments) (any, *refusal) {
	if len(in.Refs) == 0 || len(in.Refs) > describeMax {
		return nil, because(abi.Errorf(abi.CodeInvalidRequest, "from 1 to %d refs are described at once", describeMax).At("/refs"))
	}
	for _, ref := range in.Refs {
		if _, err := abi.ParseCapabilityRef(ref); err != nil {
			return nil, because(abi.AsError(err).At("/refs"))
		}
	}
	all, refused := s.o.Pipeline.List(c, x.request())
	if refused != nil {
		return nil, &refusal{told: refused}
	}
	out := descriptions{Capabilities: []described{}}
	for _, ref := range in.Refs {
		i, ok := slices.BinarySearchFunc(all, abi.CapabilityRef(ref), func(c invoke.Capability, r abi.CapabilityRef) int { return cmp.Compare(c.Ref, r) })
		if !ok {
			out.NotFound = append(out.NotFound, ref)
			continue
		}
		d := &all[i]
		out.Capabilities = append(out.Capabilities, described{
			origin: provenance(d), Title: marked(d, d.Title), Summary: marked(d, d.Summary), SideEffects: marked(d, d.SideEffects),
			InputSchema: shown(d.InputSchema), OutputSchema: shown(d.OutputSchema), Examples: d.Examples, Text: provenanceOfText,
		})
	}
	return out, nil
}

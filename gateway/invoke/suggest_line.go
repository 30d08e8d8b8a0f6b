package invoke

import (
	"cmp"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/usage"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// maxSuggestions bounds what is suggested for the host calls of one invocation.
const maxSuggestions = 16

// suggestLines says what would have let the host calls through that were refused, of the invocation and, after
// them, of the children whose own decision was against them. It is made of the receipt and of policy, and
// goes where they go.
func (c *attempt) suggestLines(r *boundary.Receipt) []problem.Suggestion {
	var out []problem.Suggestion
	add := func(s problem.Suggestion) {
		if s.Kind != "" && len(out) < maxSuggestions && !slices.ContainsFunc(out, func(o problem.Suggestion) bool { return same(o, s) }) {
			out = append(out, s)
		}
	}
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Code != "" {
			s := c.suggestLine(l)
			s.Detail = "for the call of " + l.Function
			add(s)
		}
	}
	for _, s := range c.live.told {
		add(s)
	}
	return out
}

// suggestLine is what would have let one host call through; no kind means that nothing would. What is answered the
// same whether something is absent or refused is suggested the same, too.
func (c *attempt) suggestLine(l *boundary.Line) problem.Suggestion {
	install := problem.Suggestion{Kind: problem.RequestInstall, Biome: c.decision.Biome, Environment: string(c.facts.Environment)}
	switch l.Code {
	case abi.CodeResourceNotInGlob:
		for _, name := range usage.Pair(l.Target) {
			if s := c.suggestGlob(name); s.Kind != "" {
				return s
			}
		}
	case abi.CodeEndpointRefused:
		return c.suggestEndpoint(install, l.Target)
	case abi.CodeSecretDenied:
		install.Secret = cmp.Or(l.Secret, l.Target) // the target of a request is where it goes
		return install
	case abi.CodeClassificationFlow:
		return c.suggestFlow(l)
	case abi.CodeReachCeiling:
		return c.suggestReach()
	case abi.CodeMissingGrant:
		if ref := abi.CapabilityRef(l.Target); l.Function == "capability_invoke" && !slices.Contains(c.calls(), ref) {
			install.Call = l.Target
			return install
		}
	}
	return problem.Suggestion{}
}

// suggestFlow says which of the labels that an invocation began with is above what a sink takes: what its caller
// declared, or what the session was given. What it read since is data, and no policy makes that less; nor
// is what flows into a child its own.
func (c *attempt) suggestFlow(l *boundary.Line) problem.Suggestion {
	s := problem.Suggestion{Subject: string(c.facts.Subject), Capability: string(c.facts.Capability), Environment: string(c.facts.Environment)}
	takes := c.takes(l)
	switch {
	case !takes.Valid() || c.facts.Parent != nil || c.facts.Lower != nil:
		return problem.Suggestion{}
	case c.facts.Declared > takes:
		s.Kind, s.Classification = problem.UseLess, takes
	case c.facts.Mark > takes:
		s.Kind = problem.OpenSession
	default:
		return problem.Suggestion{}
	}
	return s
}

// takes is what policy says that the sink of a host call takes at least: the clearance of an endpoint, the floor of
// the space for what is made in it. Invalid: the call has no such sink.
func (c *attempt) takes(l *boundary.Line) abi.Classification {
	fn, _ := abi.FunctionByName(l.Function)
	switch fn.Group {
	case abi.GroupHTTP:
		u, err := egress.ParseURL(l.Target)
		_, served := c.snapshot.Route(c.facts.Org, c.facts.Capability, c.facts.Environment)
		if err != nil || served == nil {
			return 0
		}
		most := abi.Classification(0)
		for _, e := range served.Kept.Endpoints {
			if e.Match("GET", u) || e.Match("POST", u) || e.Match("PUT", u) || e.Match("PATCH", u) || e.Match("DELETE", u) || e.Match("HEAD", u) || e.Match("OPTIONS", u) {
				most = max(most, e.Clearance)
			}
		}
		return most
	case abi.GroupKV, abi.GroupFiles:
		if org := c.snapshot.Orgs.At(c.facts.Org); org != nil && (fn.Flow == abi.FlowSink || fn.Flow == abi.FlowBoth) {
			return org.Spaces.At(c.facts.Space).Floor
		}
	}
	return 0
}

// reachWait is after how many seconds to try again what the catalogue could not say the reach of.
const reachWait = 1

// suggestReach is for host functions above what the invocation is held to. A capability declares at least the reach
// of all it imports, and the gate holds that to its environment and its caller: only where the catalogue
// could not say what was declared is it held to less.
func (c *attempt) suggestReach() problem.Suggestion {
	if !c.decision.ReachDeferred {
		return problem.Suggestion{}
	}
	return problem.Suggestion{
		Kind: problem.Wait, Subject: string(c.facts.Subject), Capability: string(c.facts.Capability), Environment: string(c.facts.Environment), Seconds: reachWait,
	}
}

// calls are what the install grant lets the biome call.
func (c *attempt) calls() []abi.CapabilityRef {
	if _, served := c.snapshot.Route(c.facts.Org, c.facts.Capability, c.facts.Environment); served != nil {
		return served.Kept.Calls
	}
	return nil
}

// suggestEndpoint names the endpoint that the biome's manifest requires and that admits the URL by any method; otherwise
// one has to be made. An obligation that does not admit it cannot be helped.
func (c *attempt) suggestEndpoint(install problem.Suggestion, target string) problem.Suggestion {
	_, served := c.snapshot.Route(c.facts.Org, c.facts.Capability, c.facts.Environment)
	u, err := egress.ParseURL(target)
	if served == nil || err != nil {
		return problem.Suggestion{}
	}
	if s := c.suggestNaming(func(g *grant.Grant) bool {
		named, err := grant.CompileURLs(g.URLs)
		return err == nil && (named == nil || named.Admits(u))
	}); s.Kind != "" {
		s.URL = target
		return s
	}
	for _, l := range c.decision.Obligations().Egress {
		if !l.Admits(u) {
			return problem.Suggestion{}
		}
	}
	install.URL = target
	for _, e := range served.Declared.Endpoints {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if e.Match(method, u) {
				install.Endpoint = e.Name
				return install
			}
		}
	}
	install.Kind = problem.RequestEndpoint
	return install
}

// suggestGlob says which grant has to name a resource.
func (c *attempt) suggestGlob(target string) problem.Suggestion {
	exact, ok := grant.Exactly(target)
	if !ok {
		return problem.Suggestion{}
	}
	s := c.suggestNaming(func(g *grant.Grant) bool { return glob.NewSet(g.Globs).Match(target) })
	if s.Kind != "" {
		s.Globs = []string{exact}
	}
	return s
}

// suggestNaming finds a grant that does not name something, of the invocation's and then of those above it.
func (c *attempt) suggestNaming(names func(*grant.Grant) bool) problem.Suggestion {
	org := c.snapshot.Orgs.At(c.facts.Org)
	for f := c.facts; f != nil && org != nil; f = c.p.above(f) {
		subjects := []abi.Subject{f.Subject, f.User}
		if f.Parent != nil {
			subjects = append(subjects, abi.Subject(string(abi.SubjectBiome)+":"+f.Parent.Authority.Spec().Biome))
		}
		for _, subject := range subjects {
			g := org.Held(subject, f.Capability).In(f.Environment)
			if g == nil || names(g) {
				continue
			}
			return problem.Suggestion{
				Kind: problem.RequestGrant, Subject: string(subject), Capability: string(f.Capability), Environment: string(f.Environment), Grant: g.ID,
			}
		}
	}
	return problem.Suggestion{}
}

// above are the facts of the invocation that made one, or nil.
func (p *Pipeline) above(f *gate.Facts) *gate.Facts {
	if f.Parent == nil {
		return nil
	}
	if r := p.live.get(f.Parent.Authority.Spec().Invocation); r != nil {
		return r.facts
	}
	return nil
}

func recorded(all []problem.Suggestion) []audit.Suggestion {
	var out []audit.Suggestion
	for _, s := range all {
		out = append(out, audit.Suggestion(s))
	}
	return out
}

package invoke

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// suggestions says, for each failed check, what would help; done by someone who may, it makes
// the same call pass that check. It is empty for a decision that allows.
func (c *attempt) suggestions() []problem.Suggestion {
	var out []problem.Suggestion
	for i, r := range c.decision.Checks {
		if r.State != gate.Failed {
			continue
		}
		s := c.suggest(gate.CheckID(i), r.Code)
		s.Detail = "" // what differs in nothing else is said once
		if slices.ContainsFunc(out, func(o problem.Suggestion) bool { o.Detail = ""; return same(o, s) }) {
			continue
		}
		s.Detail = "for the check " + gate.Checks()[i].Name
		out = append(out, s)
	}
	return out
}

func same(a, b problem.Suggestion) bool {
	globs := slices.Equal(a.Globs, b.Globs)
	a.Globs, b.Globs = nil, nil
	return globs && a.Kind == b.Kind && a.Subject == b.Subject && a.Capability == b.Capability && a.Environment == b.Environment &&
		a.Space == b.Space && a.Grant == b.Grant && a.Biome == b.Biome && a.Call == b.Call && a.Endpoint == b.Endpoint &&
		a.Secret == b.Secret && a.URL == b.URL && a.Classification == b.Classification && a.Seconds == b.Seconds
}

// suggest is what would help against one failed check.
func (c *attempt) suggest(check gate.CheckID, code abi.Code) problem.Suggestion {
	s := problem.Suggestion{
		Kind: gate.Checks()[check].Suggest, Subject: string(c.facts.Subject), Capability: string(c.facts.Capability), Environment: string(c.facts.Environment),
	}
	switch check {
	case gate.CheckEnvironment, gate.CheckReach, gate.CheckAllowList:
		s.Environment = string(c.elsewhere())
		if s.Environment == "" {
			s.Kind, s.Environment, s.Capability = problem.UseAnother, string(c.facts.Environment), string(c.another())
		}
	case gate.CheckLifecycle:
		switch next := c.decision.Ending.ReplacedBy; {
		case code == abi.CodeBiomeDisabled:
			s.Kind, s.Biome = problem.RequestEnable, c.decision.Biome
		case code == abi.CodeCapabilityRetired && next != "":
			s.Kind, s.Capability = problem.UseSuccessor, string(next)
		default:
			s.Capability = string(c.another())
		}
	case gate.CheckInstall, gate.CheckAdmitted:
		s.Biome = c.decision.Biome
	case gate.CheckCalls:
		s.Biome, s.Call = c.callingBiome(), s.Capability
	case gate.CheckGrant:
		c.suggestGrant(&s, c.facts.Subject)
	case gate.CheckUserGrant:
		c.suggestGrant(&s, c.facts.User)
	case gate.CheckCallerGrant:
		c.suggestGrant(&s, abi.Subject(string(abi.SubjectBiome)+":"+c.callingBiome()))
	case gate.CheckClassification:
		c.suggestLabel(&s)
	case gate.CheckRate:
		s.Seconds = max(1, seconds(c.wait))
	}
	return s
}

// suggestGrant says whose grant it takes. A user's space has to be named; one that stands and does not name the
// space is replaced.
func (c *attempt) suggestGrant(s *problem.Suggestion, subject abi.Subject) {
	s.Subject = string(subject)
	org := c.snapshot.Orgs.At(c.facts.Org)
	if org == nil {
		return
	}
	g := org.Held(subject, c.facts.Capability).In(c.facts.Environment)
	if g != nil && grant.Active(g.Expires, c.facts.Now) {
		s.Grant, s.Space = g.ID, c.facts.Space
	} else if org.Spaces.At(c.facts.Space).Personal {
		s.Space = c.facts.Space
	}
}

// callingBiome is who invokes a child.
func (c *attempt) callingBiome() string {
	if c.facts.Parent == nil || c.facts.Parent.Authority == nil {
		return ""
	}
	return c.facts.Parent.Authority.Spec().Biome
}

// suggestLabel says which of the labels that an invocation starts with is too high: what the caller declared,
// what the session was given, or the space's floor, for which the session or the environment would have to
// be cleared.
func (c *attempt) suggestLabel(s *problem.Suggestion) {
	ceiling := c.decision.Ceiling
	org := c.snapshot.Orgs.At(c.facts.Org)
	if org == nil {
		return
	}
	floor := org.Spaces.At(c.facts.Space).Floor
	switch {
	case floor > ceiling && floor > c.facts.Clearance:
		s.Kind, s.Classification = problem.OpenSession, floor
	case floor > ceiling:
		s.Kind, s.Classification = problem.RequestCeiling, floor
	case c.facts.Parent == nil && c.facts.Mark > ceiling:
		s.Kind = problem.OpenSession
	case c.facts.Declared > ceiling || c.facts.Parent != nil:
		s.Classification = ceiling
	}
}

// another is the highest other major of the same capability, of the same biome, that the same caller may invoke as
// it is, or "": none works, or the caller may not know of any.
func (c *attempt) another() abi.CapabilityRef {
	if c.decision.Biome == "" {
		return ""
	}
	name, _, _ := strings.Cut(string(c.facts.Capability), "@")
	b, _ := c.snapshot.Route(c.facts.Org, c.facts.Capability, c.facts.Environment)
	if b == nil {
		return ""
	}
	best, highest := abi.CapabilityRef(""), -1
	for ref, d := range b.Provided() {
		other, major, _ := strings.Cut(string(ref), "@")
		n, err := strconv.Atoi(major)
		if err != nil || other != name || ref == c.facts.Capability || n <= highest {
			continue
		}
		f := *c.facts
		f.Capability, f.Reach, f.Rate, f.Schema = ref, d.Reach, gate.Within, gate.Satisfied
		if gate.Decide(c.snapshot, &f).Verdict != gate.Deny {
			best, highest = ref, n
		}
	}
	return best
}

// elsewhere is the environment in which the same call would come furthest, of those that are wide enough for it;
// the narrowest when several are as good, and "" when none is. What waives is not suggested.
func (c *attempt) elsewhere() abi.EnvironmentRef {
	best, fewest, reach := abi.EnvironmentRef(""), gate.NumChecks+1, abi.ReachPlatform
	try := func(e *environment.Environment) {
		if !e.Available || e.Waives || e.Ref == c.facts.Environment {
			return
		}
		f := *c.facts
		f.Environment, f.Parent, f.Rate, f.Schema = e.Ref, nil, gate.Within, gate.Satisfied
		d := gate.Decide(c.snapshot, &f)
		if c.decision.Digest != "" && d.Digest != c.decision.Digest {
			return // another version, of which the reach is not known here
		}
		failed := 0
		for i, r := range d.Checks {
			if r.State != gate.Failed {
				continue
			}
			failed++
			switch gate.CheckID(i) {
			case gate.CheckEnvironment, gate.CheckReach, gate.CheckAllowList:
				return
			}
		}
		if cmp.Or(cmp.Compare(failed, fewest), cmp.Compare(e.Reach, reach), cmp.Compare(e.Ref, best)) < 0 {
			best, fewest, reach = e.Ref, failed, e.Reach
		}
	}
	if p := c.facts.Parent; p != nil && p.Authority != nil {
		env := c.snapshot.EnvironmentIn(c.facts.Org, c.facts.Environment)
		if env == nil || p.Authority.Spec().Reach < env.Reach {
			return "" // it is the calling capability that does not reach so far
		}
	}
	for i := range c.snapshot.Environments {
		try(&c.snapshot.Environments[i])
	}
	if org := c.snapshot.Orgs.At(c.facts.Org); org != nil {
		for _, e := range org.Environments.All() {
			try(e)
		}
	}
	return best
}

package gate

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// CheckID numbers the checks in the order in which the first failure names the code.
type CheckID int

// The checks.
const (
	CheckEnvironment    CheckID = iota // the environment can be used here at all
	CheckLifecycle                     // the capability exists and is not disabled
	CheckInstall                       // an admitted version provides it
	CheckCalls                         // children: the calling biome was admitted to call it
	CheckAdmitted                      // the install grant admits the environment
	CheckCallerGrant                   // children: the calling biome holds a grant
	CheckGrant                         // the subject holds a grant
	CheckUserGrant                     // agents: the user holds one as well
	CheckReach                         // the declared reach is within every ceiling
	CheckClassification                // the starting label is within every ceiling
	CheckAllowList                     // an environment of an organisation's own names the capability, if it names any
	CheckRate                          // no ceiling on how often is used up
	CheckSchema                        // the input satisfies the schema
	CheckApproval                      // a person approved it, where one has to
	NumChecks           = int(iota)
)

// Check is one row of the table.
type Check struct {
	Name    string
	Code    abi.Code   // of a failure, unless the check names a closer one
	Suggest string     // what would help
	Asks    string     // for the documentation, which is made of this table
	Closer  []abi.Code // that it may name instead
	judge   func(view) Result
}

var checks = [NumChecks]Check{
	CheckEnvironment:    {"environment", abi.CodeEnvironmentUnusable, "switch-environment", "may this session use the environment in this space, and is a child where its parent is?", nil, judgeEnvironment},
	CheckLifecycle:      {"lifecycle", abi.CodeBiomeDisabled, "use-another-capability", "is the capability there, its biome not disabled, and it not retired?", []abi.Code{abi.CodeCapabilityUnknown, abi.CodeCapabilityRetired}, judgeLifecycle},
	CheckInstall:        {"install", abi.CodeMissingGrant, "request-install", "does a version that an install grant admits provide it?", nil, judgeInstall},
	CheckCalls:          {"calls", abi.CodeMissingGrant, "request-install", "of a child: does the install grant let the calling biome call it?", nil, judgeCalls},
	CheckAdmitted:       {"environment-admitted", abi.CodeEnvironmentNotGranted, "request-install", "does the install grant admit the environment?", nil, judgeAdmitted},
	CheckCallerGrant:    {"caller-grant", abi.CodeMissingGrant, "request-grant", "of a child: does the calling biome hold a grant for it here?", nil, judgeCallerGrant},
	CheckGrant:          {"grant", abi.CodeMissingGrant, "request-grant", "does the subject hold a grant for it here, in this space?", nil, judgeGrant},
	CheckUserGrant:      {"user-grant", abi.CodeSubjectNotCovered, "request-grant", "of an agent: does the user it acts for hold one as well?", nil, judgeUserGrant},
	CheckReach:          {"reach", abi.CodeReachCeiling, "switch-environment", "is the declared reach within the environment and, of a child, its caller?", []abi.Code{abi.CodeUnclassified}, judgeReach},
	CheckClassification: {"classification", abi.CodeClassificationCeiling, "use-less-sensitive-data", "is the label it starts with within every ceiling?", nil, judgeClassification},
	CheckAllowList:      {"allow-list", abi.CodeNotInAllowList, "switch-environment", "of an environment of the organisation's own that names capabilities: is it one of them?", nil, judgeAllowList},
	CheckRate:           {"rate", abi.CodeRateExceeded, "wait", "is no ceiling on how often used up?", []abi.Code{abi.CodeRateUnavailable}, judgeRate},
	CheckSchema:         {"schema", abi.CodeInputSchema, "correct-input", "does the input satisfy the schema?", nil, judgeSchema},
	CheckApproval:       {"approval", abi.CodeApprovalRequired, "await-approval", "did a person approve it, where one has to?", nil, judgeApproval},
}

// Checks returns the table.
func Checks() []Check { return checks[:] }

var (
	passed        = Result{State: Passed}
	waived        = Result{State: Waived}
	notReached    = Result{State: NotReached}
	notApplicable = Result{State: NotApplicable}
)

// failed fails with the row's own code, which [Decide] fills in.
var failed = Result{State: Failed}

func pass(ok bool) Result {
	if ok {
		return passed
	}
	return failed
}

// view is what was looked up for one decision, once, for all checks. Judges take it by value,
// so that nothing of it is allocated.
type view struct {
	f      *Facts
	env    *environment.Environment
	space  space.Effective
	biome  *Biome          // who provides the capability, or nil
	served *Admission      // the version that serves the environment, or nil
	desc   *abi.Descriptor // of the capability in that version, or nil
	ending Ending          // of the capability; zero unless it is deprecated or retired
	parent *authority.Spec // of the calling invocation, or nil

	callerKept  *Kept // what the calling biome may call; nil when it is no longer admitted
	known       bool  // the subject holds a grant for the capability, in any environment
	subject     *grant.Grant
	user        *grant.Grant
	callerGrant *grant.Grant

	reach   abi.Reach // declared, or owner where the catalogue cannot say
	bound   abi.Reach // min(environment, parent)
	start   abi.Classification
	ceiling abi.Classification
}

// judgeEnvironment holds that the environment can be used by this session in this space, and
// that a child stays where its parent is (X7, S19).
func judgeEnvironment(v view) Result {
	switch {
	case v.env == nil || !v.env.Available:
		return failed
	case v.env.Waives && (!v.f.Dev || !v.space.Dev || v.space.Production):
		return failed
	case v.f.Parent != nil && !v.continues():
		return failed
	}
	return passed
}

// continues reports whether a child's facts are those of its parent's session.
func (v view) continues() bool {
	p := v.parent
	return p != nil && p.Org == v.f.Org && p.Session == v.f.Session && p.Space == v.f.Space && p.Subject == v.f.Subject &&
		p.User == v.f.User && p.Environment == v.f.Environment
}

// judgeInstall looks at the version, not at the environment: a capability that a newer upload
// added is not in the version that an install grant is bound to (X63).
func judgeInstall(v view) Result {
	switch {
	case v.biome == nil:
		return notReached
	case v.desc == nil:
		return failed
	case v.env.Waives:
		return waived
	}
	return passed
}

func judgeCalls(v view) Result {
	if v.parent == nil {
		return notApplicable
	}
	return pass(v.callerKept != nil && slices.Contains(v.callerKept.Calls, v.f.Capability))
}

func judgeAdmitted(v view) Result {
	switch {
	case v.served == nil:
		return notReached
	case v.env.Waives:
		return waived
	}
	return pass(v.served.admits(v.biome.Org, v.env))
}

func judgeCallerGrant(v view) Result {
	switch {
	case v.parent == nil:
		return notApplicable
	case v.env.Waives:
		return waived
	}
	// A biome acts where its invocation is, which the subject's grant has settled: only a grant that
	// names spaces holds it to them.
	g := v.callerGrant
	return pass(g != nil && grant.Active(g.Expires, v.f.Now) && g.HoldsIn(v.f.Space, false))
}

func judgeGrant(v view) Result {
	if v.env.Waives {
		return waived
	}
	return v.holds(v.subject)
}

// judgeUserGrant holds an agent to its user: it never exceeds what that user holds (X38).
func judgeUserGrant(v view) Result {
	switch {
	case v.f.Subject.Kind() != abi.SubjectAgent:
		return notApplicable
	case v.env.Waives:
		return waived
	}
	return v.holds(v.user)
}

func (v view) holds(g *grant.Grant) Result {
	return pass(g != nil && grant.Active(g.Expires, v.f.Now) && g.HoldsIn(v.f.Space, v.space.Personal))
}

func judgeReach(v view) Result {
	switch {
	case v.desc == nil:
		return notReached
	case v.f.Reach.Valid():
		return pass(v.f.Reach.Within(v.bound))
	case v.env.Enforcement == environment.Refinement:
		return Result{State: Deferred}
	}
	return Result{State: Failed, Code: abi.CodeUnclassified}
}

func judgeClassification(v view) Result { return pass(v.start <= v.ceiling) }

func judgeSchema(v view) Result {
	switch {
	case v.desc == nil:
		return notReached
	case v.f.Schema == Satisfied:
		return passed
	case v.f.Schema == Unjudged:
		return Result{State: Pending}
	}
	return failed
}

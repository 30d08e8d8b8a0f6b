package gate

import "github.com/ecotone-dev/ecotone/gateway/grant"

// judgeApproval asks for a person's word where the capability, the install grant or a grant that is used
// wants one. What an invocation was approved for covers nothing that it calls: a child cannot wait for
// anybody, so it is denied.
func judgeApproval(v view) Result {
	switch {
	case v.desc == nil:
		return notReached
	case !v.wantsApproval():
		return passed
	case v.env.Waives:
		return waived
	}
	return pass(v.f.Approved)
}

func (v view) wantsApproval() bool {
	if v.desc.RequiresApproval || v.served.Asks.Approval {
		return true
	}
	for _, g := range [numGrants]*grant.Grant{v.subject, v.user, v.callerGrant} {
		if g != nil && g.Asks().Approval {
			return true
		}
	}
	return false
}

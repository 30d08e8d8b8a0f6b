package policy

import (
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// S17: an approval is void when who gave it might not give it now: the grant to approve was revoked or ran out,
// the principal is cleared for less, or is not there.
func TestWhoApprovedStillMight(t *testing.T) {
	until := noon.Add(time.Hour)
	a := &approval.Standing{
		Request:  approval.Request{ID: "a", Label: abi.Secret, Capability: notes},
		Decision: &approval.Decision{By: "principal:o/ann", Verdict: approval.Approve},
	}
	for name, c := range map[string]struct {
		change func(*orgState)
		now    time.Time
		void   bool
	}{
		"nothing":              {change: func(*orgState) {}},
		"an expiry":            {change: func(*orgState) {}, now: until, void: true},
		"a revocation":         {change: func(o *orgState) { o.revoked["g"] = grant.Revocation{Grant: "g"} }, void: true},
		"another's revocation": {change: func(o *orgState) { o.revoked["h"] = grant.Revocation{Grant: "h"} }},
		"another capability": {change: func(o *orgState) {
			o.approveGrants["g"] = grant.ApproveGrant{ID: "g", Principal: "principal:o/ann", Capability: string(relay)}
		}, void: true},
		"less clearance": {change: func(o *orgState) {
			o.principals["ann"] = session.Principal{ID: "ann", Org: "o", Role: session.Approver, Clearance: abi.Confidential}
		}, void: true},
		"no principal": {change: func(o *orgState) { delete(o.principals, "ann") }, void: true},
	} {
		o := newOrg(Org{ID: "o"})
		o.principals["ann"] = session.Principal{ID: "ann", Org: "o", Role: session.Approver, Clearance: abi.Secret}
		o.approveGrants["g"] = grant.ApproveGrant{ID: "g", Principal: "principal:o/ann", Capability: string(notes), Expires: &until}
		c.change(o)
		if c.now.IsZero() {
			c.now = noon
		}
		want := abi.Code("")
		if c.void {
			want = abi.CodeApprovalStale
		}
		if err := o.stillApproved(a, c.now); abi.CodeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

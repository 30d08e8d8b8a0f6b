package policy

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// promotion is what a request to admit a version is bound to: the install grant to be made, the document
// of what the version may do, and everything named in it as it is when it is asked for (S17).
type promotion struct {
	Install   InstallRequest    `json:"install"`             // with the digest of the permission document
	Replaces  uint64            `json:"replaces"`            // revision of the newest install grant that stands; 0: none
	Endpoints map[string]uint64 `json:"endpoints,omitempty"` // name → revision
	Secrets   map[string]uint64 `json:"secrets,omitempty"`   // name → version
}

func init() { approving[approval.Promotion] = (*Service).promoted }

// Promote asks for a version to be admitted: out of sandbox it comes by the word of somebody else than who
// uploaded it (X62). What is asked for is checked as an install is, and is fixed: once approved, it is
// installed as it was asked for, or void.
func (s *Service) Promote(ctx context.Context, p session.Principal, r InstallRequest) (out approval.Request, err error) {
	in := intent{
		by: p, op: OpPromote, org: r.Org, target: r.Biome,
		fields: []string{"digest", "environments", "calls", "endpoints", "secrets", "config", "permissions", "alongside"},
	}
	err = s.apply(ctx, in, func(st *state) (*change, error) {
		o, b, err := st.biome(r.Org, r.Biome)
		if err != nil {
			return nil, err
		}
		i, err := st.installOf(o, b, r)
		if err != nil {
			return nil, err
		}
		r.Permissions = i.Permissions
		binding, err := json.Marshal(o.bind(b, r))
		if err != nil {
			return nil, err
		}
		now := s.clock().UTC()
		out = approval.Request{
			ID: session.NewID(now), Org: r.Org, Kind: approval.Promotion, User: p.User, Requester: p.Name(),
			Label: abi.Public, // what a biome may do, anybody of the organisation may read
			Biome: r.Biome, Binding: binding,
		}
		if err := s.newApproval(o, &out, now); err != nil {
			return nil, err
		}
		return &change{records: []any{out}, target: r.Biome + "@" + r.Digest}, nil
	})
	return out, err
}

// bind fixes what a promotion rests on, as it is now.
func (o *orgState) bind(b *biomeState, r InstallRequest) promotion {
	out := promotion{Install: r, Replaces: revisionOf(o.installed(b)), Endpoints: map[string]uint64{}, Secrets: map[string]uint64{}}
	for _, name := range r.Endpoints {
		if e := o.endpoints[name]; e != nil {
			out.Endpoints[name] = e.record.Revision
		}
	}
	for _, name := range r.Secrets {
		out.Secrets[name] = o.secrets[name].Version
	}
	return out
}

// promoted is the install that approving a promotion comes to, in the same change. What is not as it was
// when it was asked for voids it.
func (s *Service) promoted(st *state, p session.Principal, a *approval.Request) (*change, error) {
	var was promotion
	if err := abi.DecodeStrict(a.Binding, &was); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "a promotion does not decode: %w", err)
	}
	r := was.Install
	o, b, err := st.biome(r.Org, r.Biome)
	if err != nil {
		return nil, err
	}
	if u := b.uploads[r.Digest]; u != nil && st.sameHands(p, u.record.CreatedBy) {
		return nil, abi.Errorf(abi.CodeForbidden, "who uploaded a version does not approve it")
	}
	now := o.bind(b, r)
	var changed []string
	for _, m := range []struct {
		name string
		same bool
	}{
		{"install", was.Replaces == now.Replaces},
		{"endpoints", maps.Equal(was.Endpoints, now.Endpoints)},
		{"secrets", maps.Equal(was.Secrets, now.Secrets)},
	} {
		if !m.same {
			changed = append(changed, m.name)
		}
	}
	if len(changed) > 0 {
		return nil, approval.StaleBecause(changed)
	}
	i, err := st.installOf(o, b, r)
	if err != nil {
		return nil, approval.StaleBecause(nil).WithCause(err)
	}
	i.Approval = a.ID
	c := s.admit(o, b, p, &i, replacedBy(r))
	c.target = ""
	c.records = append(c.records, approval.Result{Approval: a.ID, Org: a.Org, State: approval.Done, At: i.CreatedAt})
	return c, nil
}

// sameHands reports whether a principal is the one a record names, or is of the same user.
func (st *state) sameHands(p session.Principal, name string) bool {
	if p.Name() == name {
		return true
	}
	org, id, _ := strings.Cut(strings.TrimPrefix(name, "principal:"), "/")
	o := st.orgs[org]
	return o != nil && p.User != "" && o.principals[id].User == p.User
}

// underReview are the versions of a biome that somebody is asked to admit.
func (o *orgState) underReview(name string, now time.Time) map[string]bool {
	out := map[string]bool{}
	for _, a := range o.approvals {
		if r := &a.Request; r.Kind == approval.Promotion && r.Biome == name && a.State(now) == approval.Pending {
			var asked promotion
			if json.Unmarshal(r.Binding, &asked) == nil {
				out[asked.Install.Digest] = true
			}
		}
	}
	return out
}

// Version is an upload with how far it has come.
type Version struct {
	Upload
	Stage grant.Stage `json:"stage"`
}

// stageOf is how far one version of a biome has come.
func (o *orgState) stageOf(b *biomeState, digest string, review map[string]bool) grant.Stage {
	for _, i := range o.installed(b) {
		if i.Digest == digest {
			return grant.OrgInstalled
		}
	}
	switch {
	case b.record.Archived:
		return grant.Archived
	case review[digest]:
		return grant.ReviewRequired
	}
	return grant.SandboxInstalled
}

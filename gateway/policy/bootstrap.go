package policy

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
)

// What the first start makes.
const (
	DefaultOrg        = "default"
	DevSpace          = "dev"
	operatorPrincipal = "operator"
	devSession        = 366 * 24 * time.Hour
)

// bootstrapper is who the first start is recorded as.
var bootstrapper = session.Principal{ID: "bootstrap", Org: SystemOrg, Role: session.Operator}

// Bootstrap makes, on the first start and never again, the organisations system and default
// with their spaces and the operator principal; under --dev also the space dev and a session of
// user:dev in trusted-dev. The tokens are in the answer, and were given to [Options.Keep], this
// once.
//
// On every start it stores the limits of the built-in environments that were never stored: what a
// later version ships as its defaults changes nothing here (PF-I10).
func (s *Service) Bootstrap(ctx context.Context) (First, error) {
	if err := s.keepLimits(ctx); err != nil {
		return First{}, err
	}
	var first First
	err := s.apply(ctx, intent{by: bootstrapper, op: OpOrgCreate, org: DefaultOrg, target: DefaultOrg}, func(st *state) (*change, error) {
		if len(st.orgs) > 0 {
			return nil, nil
		}
		now := s.clock().UTC()
		by := bootstrapper.Name()
		systemOrg, systemSpace := s.newOrg(SystemOrg, space.System, by)
		org, own := s.newOrg(DefaultOrg, space.Org, by)
		who := session.Principal{ID: operatorPrincipal, Org: DefaultOrg, Role: session.Operator, Clearance: abi.Regulated}
		rec, text := newPrincipalToken(who, by, now)
		first.OperatorToken = text
		c := &change{limits: true, records: append(s.unstored(st, by), []any{
			systemOrg, s.newRates(SystemOrg, by, now), systemSpace, org, s.newRates(DefaultOrg, by, now), own, who, rec,
		}...), org: DefaultOrg}
		if s.dev {
			c.records = append(c.records, s.devRecords(own, by, now, &first)...)
		}
		if s.keep != nil {
			if err := s.keep(first); err != nil {
				return nil, abi.Errorf(abi.CodeInternal, "the first tokens could not be kept: %w", err)
			}
		}
		return c, nil
	})
	if err != nil {
		return First{}, err
	}
	return first, nil
}

// keepLimits stores what an older version left to the defaults of whichever version runs.
func (s *Service) keepLimits(ctx context.Context) error {
	in := intent{by: bootstrapper, op: OpLimits, org: DefaultOrg, target: "built-in", fields: []string{"limits"}}
	return s.apply(ctx, in, func(st *state) (*change, error) {
		records := s.unstored(st, bootstrapper.Name())
		if len(st.orgs) == 0 || len(records) == 0 {
			return nil, nil
		}
		return &change{records: records, limits: true}, nil
	})
}

// unstored is the limits, as they are resolved now, of the built-in environments that have no record of them.
func (s *Service) unstored(st *state, by string) []any {
	var out []any
	for _, e := range st.environments {
		if _, stored := st.limited[e.Ref]; !stored {
			out = append(out, limitsRecord{
				Environment: e.Ref, Limits: environment.LimitsByName(e.Limits), Revision: e.Revision, UpdatedBy: by, UpdatedAt: s.clock().UTC(),
			})
		}
	}
	return out
}

func (s *Service) devRecords(around space.Space, by string, now time.Time, first *First) []any {
	dev := space.Space{
		Org: DefaultOrg, ID: DevSpace, Kind: space.Project, Parent: around.ID, Dev: true,
		Floor: around.Floor, Clearance: around.Clearance, CreatedBy: by, CreatedAt: now,
	}
	sess := session.Session{
		ID: session.NewID(now), Org: DefaultOrg, Subject: "user:dev", Space: dev.ID,
		Environment: abi.MakeEnvironmentRef(environment.TrustedDev), Clearance: dev.Clearance, Dev: true,
		Expires: now.Add(devSession), OpenedBy: by, OpenedAt: now, Mark: abi.Public,
	}
	sess.Workspace = sess.ID
	rec, text := session.NewToken(session.KindSession, now)
	rec.Org, rec.Session, rec.Expires, rec.CreatedBy = DefaultOrg, sess.ID, &sess.Expires, by
	first.DevToken = text
	return []any{dev, sess, rec}
}

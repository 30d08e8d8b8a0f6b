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
func (s *Service) Bootstrap(ctx context.Context) (First, error) {
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
		c := &change{records: []any{
			systemOrg, s.newRates(SystemOrg, by, now), systemSpace, org, s.newRates(DefaultOrg, by, now), own, who, rec,
		}, org: DefaultOrg}
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

package policy

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Rates is how often an organisation's subjects and clients may invoke, an hour (X40). Both are
// always set: what an organisation begins with is stored with it, so that a new default changes
// nothing that was decided before.
type Rates struct {
	Org       string     `json:"org"`
	Subject   rate.Limit `json:"subjectPerHour"` // of one subject behind one client
	Client    rate.Limit `json:"clientPerHour"`  // of everything that comes by one client
	Revision  uint64     `json:"revision"`
	UpdatedBy string     `json:"updatedBy"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

// Check refuses what would not be a ceiling: 0, less, and nothing at all.
func (r Rates) Check() *abi.Error {
	for _, l := range []struct {
		name  string
		limit rate.Limit
	}{{"subjectPerHour", r.Subject}, {"clientPerHour", r.Client}} {
		if !l.limit.Valid() {
			return abi.Errorf(abi.CodeUnsupportedRule, "%s must be from 1 to %d; nothing is unlimited", l.name, rate.MaxPerHour).At("/" + l.name)
		}
	}
	return nil
}

// RatesRequest sets both ceilings of an organisation. One that is absent or null is no ceiling,
// and is refused.
type RatesRequest struct {
	Org     string      `json:"org"`
	Subject *rate.Limit `json:"subjectPerHour"`
	Client  *rate.Limit `json:"clientPerHour"`
}

func given(l *rate.Limit) rate.Limit {
	if l == nil {
		return 0
	}
	return *l
}

// newRates is what an organisation begins with.
func (s *Service) newRates(org, by string, now time.Time) Rates {
	return Rates{Org: org, Subject: s.rates.Subject, Client: s.rates.Client, Revision: 1, UpdatedBy: by, UpdatedAt: now}
}

// Rates shows an organisation's ceilings.
func (s *Service) Rates(p session.Principal, org string) (out Rates, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		out = o.rates
		return nil
	})
	return out, err
}

// PutRates changes an organisation's ceilings. They hold for what begins afterwards; what is used
// up stays so.
func (s *Service) PutRates(ctx context.Context, p session.Principal, r RatesRequest, e Expect) (Rates, error) {
	var out Rates
	in := intent{by: p, op: OpRates, org: r.Org, target: r.Org, fields: []string{"subjectPerHour", "clientPerHour"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if err := e.check(o.rates.Revision); err != nil {
			return nil, err
		}
		out = Rates{
			Org: r.Org, Subject: given(r.Subject), Client: given(r.Client), Revision: o.rates.Revision + 1,
			UpdatedBy: p.Name(), UpdatedAt: s.clock().UTC(),
		}
		if err := out.Check(); err != nil {
			return nil, err
		}
		return &change{records: []any{out}, org: r.Org}, nil
	})
	return out, err
}

func (o *orgState) applyRates(r Rates) error {
	o.rates = r
	o.shard.Rates = gate.Rates{Subject: r.Subject, Client: r.Client}
	return asError(r.Check())
}

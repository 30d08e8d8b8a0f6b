package admin

import "github.com/ecotone-dev/ecotone/gateway/policy"

func (s *Server) getRates(c *call) (*reply, error) {
	r, err := s.o.Policy.Rates(c.principal, c.org)
	return okTagged(r.Revision, r, err)
}

func (s *Server) putRates(c *call) (*reply, error) {
	var in policy.RatesRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	r, err := s.o.Policy.PutRates(c.ctx, c.principal, in, e)
	return okTagged(r.Revision, r, err)
}

package admin

func (s *Server) rollbackBiome(c *call) (*reply, error) {
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	i, err := s.o.Policy.Rollback(c.ctx, c.principal, c.org, c.r.PathValue("name"), e)
	return okTagged(i.Revision, i, err)
}

func (s *Server) archiveBiome(c *call) (*reply, error) {
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	b, err := s.o.Policy.Archive(c.ctx, c.principal, c.org, c.r.PathValue("name"), e)
	return okTagged(b.Revision, b, err)
}

package admin

import (
	"net/http"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// waits is what a request answers that somebody has to approve.
type waits struct {
	Status      string    `json:"status"`
	Approval    string    `json:"approval"`
	Expires     time.Time `json:"expires"`
	Biome       string    `json:"biome"`
	Digest      string    `json:"digest"`
	Permissions string    `json:"permissions"` // digest of the version's permission document, to be looked at
}

func (s *Server) promoteBiome(c *call) (*reply, error) {
	var in policy.InstallRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	name := c.r.PathValue("name")
	if in.Biome != "" && in.Biome != name {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the body and the path name different biomes").At("/biome")
	}
	in.Biome = name
	a, err := s.o.Policy.Promote(c.ctx, c.principal, in)
	if err != nil {
		return nil, err
	}
	seen, err := s.o.Policy.Permissions(c.principal, in.Org, name, in.Digest)
	return answer(&reply{
		status: http.StatusAccepted, header: map[string]string{"Location": "/v1/approvals/" + a.ID},
		body: waits{"needs_approval", a.ID, a.Expires, name, in.Digest, seen.Permissions},
	}, err)
}

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

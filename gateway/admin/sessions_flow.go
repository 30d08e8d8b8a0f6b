package admin

import (
	"net/http"

	"github.com/ecotone-dev/ecotone/gateway/invoke"
)

// declassify asks in the place of a session. Nothing is lowered before somebody else has said so.
func (s *Server) declassify(c *call) (*reply, error) {
	var in invoke.DeclassifyRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	d, err := s.o.Pipeline.DeclassifyFor(c.ctx, c.principal, c.org, c.r.PathValue("id"), in)
	return answer(&reply{status: http.StatusAccepted, body: d, header: map[string]string{"Location": "/v1/approvals/" + d.Approval}}, err)
}

package admin

import (
	"net/http"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// listAudit shows rows. ?org=system is the operator's own: requests that were refused before
// anybody was known, and the process itself.
func (s *Server) listAudit(c *call) (*reply, error) {
	if err := policy.Allowed(c.principal, policy.OpReadAudit, c.org); err != nil {
		return nil, err
	}
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	in := audit.Query{
		Kind: q.Get("kind"), Invocation: q.Get("invocation"), Verdict: audit.Verdict(q.Get("verdict")), Parent: q.Get("parent"), Root: q.Get("root"),
		After: q.Get("after"), Limit: limit,
	}
	switch q.Get("oldest") {
	case "":
	case "true":
		in.Oldest = true
	default:
		return nil, abi.Errorf(abi.CodeInvalidRequest, "oldest must be true or absent").At("oldest")
	}
	if v := q.Get("capability"); v != "" {
		if in.Capability, err = abi.ParseCapabilityRef(v); err != nil {
			return nil, err
		}
	}
	if v := q.Get("subject"); v != "" {
		if in.Subject, err = abi.ParseSubject(v); err != nil {
			return nil, err
		}
	}
	p, err := s.o.Audit.Rows(c.ctx, c.org, in)
	if err != nil {
		return nil, err
	}
	items := p.Rows
	if items == nil {
		items = []audit.Row{}
	}
	return ok(list[audit.Row]{Items: items, Next: p.Next}, nil)
}

func (s *Server) getAudit(c *call) (*reply, error) {
	if err := policy.Allowed(c.principal, policy.OpReadAudit, c.org); err != nil {
		return nil, err
	}
	row, err := s.o.Audit.Get(c.ctx, c.org, c.r.PathValue("id"))
	return ok(row, err)
}

// auditHead is the signed note itself, to be kept elsewhere and given to `audit verify`.
func (s *Server) auditHead(c *call) (*reply, error) {
	if err := policy.Allowed(c.principal, policy.OpReadAuditHead, c.org); err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: rawBody{"text/plain; charset=utf-8", s.o.Audit.Head()}}, nil
}

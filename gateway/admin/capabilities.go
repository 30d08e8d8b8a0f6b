package admin

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

func (s *Server) listCapabilities(c *call) (*reply, error) {
	items, err := s.o.Policy.Capabilities(c.principal, c.org)
	return page(c, items, err, func(i policy.Capability) string { return string(i.Capability) }, nil)
}

func (s *Server) getCapability(c *call) (*reply, error) {
	ref, err := abi.ParseCapabilityRef(c.r.PathValue("ref"))
	if err != nil {
		return nil, err
	}
	out, err := s.o.Policy.Capability(c.principal, c.org, ref)
	if out.Revision == 0 { // nothing was said of it yet: what is said first has If-None-Match
		return ok(out, err)
	}
	return okTagged(out.Revision, out, err)
}

func (s *Server) putLifecycle(c *call) (*reply, error) {
	ref, err := abi.ParseCapabilityRef(c.r.PathValue("ref"))
	if err != nil {
		return nil, err
	}
	var in policy.LifecycleRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	if in.Capability != "" && in.Capability != ref {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the body and the path name different capabilities").At("/capability")
	}
	in.Capability = ref
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	out, err := s.o.Policy.SetLifecycle(c.ctx, c.principal, in, e)
	return okTagged(out.Revision, out, err)
}

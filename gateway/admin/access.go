package admin

import (
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

func cutDot(s string) (before, after string, found bool) { return strings.Cut(s, ".") }

// into reads the body into v and settles whose organisation it is about: the body may name the
// one the request is for, and no other.
func into[T any](c *call, v *T, org *string) error {
	if err := c.decode(v); err != nil {
		return err
	}
	if *org != "" && *org != c.org && c.r.URL.Query().Get("org") != "" {
		return abi.Errorf(abi.CodeInvalidRequest, "the body and the query name different organisations").At("/org")
	}
	if *org == "" {
		*org = c.org
	}
	return nil
}

// expect reads If-Match and If-None-Match. Policy decides whether one is needed.
func (c *call) expect() (policy.Expect, error) {
	match, none := c.r.Header.Get("If-Match"), c.r.Header.Get("If-None-Match")
	switch {
	case match != "" && none != "":
		return 0, abi.Errorf(abi.CodeInvalidRequest, "If-Match and If-None-Match exclude each other")
	case none == "*":
		return policy.Absent, nil
	case none != "":
		return 0, abi.Errorf(abi.CodeInvalidRequest, "If-None-Match must be *")
	case match == "":
		return policy.Unstated, nil
	}
	n, err := c.ifMatch()
	if err != nil {
		return 0, err
	}
	if n == 0 || n > 1<<62 {
		return 0, abi.Errorf(abi.CodePreconditionFailed, "no version has this ETag")
	}
	return policy.Expect(n), nil
}

// Organisations and spaces.

func (s *Server) listOrgs(c *call) (*reply, error) {
	items, err := s.o.Policy.Orgs(c.principal)
	return page(c, items, err, func(o policy.Org) string { return o.ID }, nil)
}

func (s *Server) createOrg(c *call) (*reply, error) {
	var in orgBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	o, err := s.o.Policy.CreateOrg(c.ctx, c.principal, in.ID)
	return created("/v1/orgs/"+o.ID, o, err)
}

func (s *Server) listSpaces(c *call) (*reply, error) {
	items, err := s.o.Policy.Spaces(c.principal, c.org)
	return page(c, items, err, func(o policy.SpaceStatus) string { return o.ID }, nil)
}

func (s *Server) getSpace(c *call) (*reply, error) {
	one, err := s.o.Policy.SpaceNamed(c.principal, c.org, c.r.PathValue("id"))
	return ok(one, err)
}

func (s *Server) createSpace(c *call) (*reply, error) {
	var in policy.SpaceRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	sp, err := s.o.Policy.CreateSpace(c.ctx, c.principal, in)
	return created("/v1/spaces/"+sp.ID, sp, err)
}

// Grants.

func (s *Server) listGrants(c *call) (*reply, error) {
	q := c.r.URL.Query()
	return cut(c, func(part policy.Cut) (policy.Page[policy.GrantStatus], error) {
		return s.o.Policy.Grants(c.ctx, c.principal, c.org, abi.Subject(q.Get("subject")), abi.CapabilityRef(q.Get("capability")), part)
	})
}

func (s *Server) createGrant(c *call) (*reply, error) {
	var in policy.GrantRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	g, err := s.o.Policy.CreateGrant(c.ctx, c.principal, in)
	return created("/v1/grants/"+g.ID, g, err)
}

func (s *Server) revokeGrant(c *call) (*reply, error) {
	r, err := s.o.Policy.RevokeGrant(c.ctx, c.principal, c.org, c.r.PathValue("id"))
	return ok(r, err)
}

func (s *Server) listEnvironmentGrants(c *call) (*reply, error) {
	return cut(c, func(part policy.Cut) (policy.Page[grant.EnvironmentGrant], error) {
		return s.o.Policy.EnvironmentGrants(c.ctx, c.principal, c.org, part)
	})
}

func (s *Server) createEnvironmentGrant(c *call) (*reply, error) {
	var in policy.EnvironmentGrantRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	g, err := s.o.Policy.CreateEnvironmentGrant(c.ctx, c.principal, in)
	return created("/v1/environment-grants/"+g.ID, g, err)
}

func (s *Server) getEnvironmentGrant(c *call) (*reply, error) {
	g, err := s.o.Policy.EnvironmentGrant(c.principal, c.org, c.r.PathValue("id"))
	return ok(g, err)
}

func (s *Server) revokeEnvironmentGrant(c *call) (*reply, error) {
	r, err := s.o.Policy.RevokeEnvironmentGrant(c.ctx, c.principal, c.org, c.r.PathValue("id"))
	return ok(r, err)
}

// Sessions and tokens.

// tokenOnce is an answer that shows a token, once.
type tokenOnce[T any] struct {
	Token string `json:"token"`
	Of    T      `json:"of"`
}

func (s *Server) openSession(c *call) (*reply, error) {
	var in policy.SessionRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	sess, token, err := s.o.Policy.OpenSession(c.ctx, c.principal, in)
	return created("/v1/sessions/"+sess.ID, tokenOnce[session.Session]{Token: token, Of: sess}, err)
}

func (s *Server) listSessions(c *call) (*reply, error) {
	return cut(c, func(part policy.Cut) (policy.Page[session.Session], error) {
		return s.o.Policy.Sessions(c.ctx, c.principal, c.org, part)
	})
}

func (s *Server) getSession(c *call) (*reply, error) {
	sess, err := s.o.Policy.Session(c.ctx, c.principal, c.org, c.r.PathValue("id"))
	return ok(sess, err)
}

func (s *Server) closeSession(c *call) (*reply, error) {
	sess, err := s.o.Policy.CloseSession(c.ctx, c.principal, c.org, c.r.PathValue("id"))
	return ok(sess, err)
}

func (s *Server) issueToken(c *call) (*reply, error) {
	var in policy.TokenRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	t, token, err := s.o.Policy.IssueToken(c.ctx, c.principal, in)
	return created("/v1/tokens/"+t.ID, tokenOnce[policy.TokenStatus]{Token: token, Of: t}, err)
}

func (s *Server) listTokens(c *call) (*reply, error) {
	return cut(c, func(part policy.Cut) (policy.Page[policy.TokenStatus], error) {
		return s.o.Policy.Tokens(c.ctx, c.principal, c.org, part)
	})
}

func (s *Server) revokeToken(c *call) (*reply, error) {
	return gone(s.o.Policy.RevokeToken(c.ctx, c.principal, c.org, c.r.PathValue("id")))
}

// Installs.

func (s *Server) listInstalls(c *call) (*reply, error) {
	items, err := s.o.Policy.Installs(c.principal, c.org)
	return page(c, items, err, func(i grant.Install) string { return i.Biome + "@" + i.Digest }, nil)
}

func (s *Server) getInstall(c *call) (*reply, error) {
	i, err := s.o.Policy.InstallOf(c.principal, c.org, c.r.PathValue("biome"), c.r.URL.Query().Get("digest"))
	return okTagged(i.Revision, i, err)
}

func (s *Server) putInstall(c *call) (*reply, error) {
	var in policy.InstallRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	if in.Biome != "" && in.Biome != c.r.PathValue("biome") {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the body and the path name different biomes").At("/biome")
	}
	in.Biome = c.r.PathValue("biome")
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	i, err := s.o.Policy.Install(c.ctx, c.principal, in, e)
	return okTagged(i.Revision, i, err)
}

func (s *Server) deleteInstall(c *call) (*reply, error) {
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	r, err := s.o.Policy.Uninstall(c.ctx, c.principal, c.org, c.r.PathValue("biome"), c.r.URL.Query().Get("digest"), e)
	return ok(r, err)
}

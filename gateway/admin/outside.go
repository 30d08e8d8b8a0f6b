package admin

import (
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// Endpoints.

func (s *Server) listEndpoints(c *call) (*reply, error) {
	items, err := s.o.Policy.Endpoints(c.principal, c.org)
	return page(c, items, err, func(e grant.Endpoint) string { return e.Name }, nil)
}

func (s *Server) getEndpoint(c *call) (*reply, error) {
	items, err := s.o.Policy.Endpoints(c.principal, c.org)
	e, err := find(items, err, "endpoint", func(e grant.Endpoint) bool { return e.Name == c.r.PathValue("name") && !e.Removed })
	return okTagged(e.Revision, e, err)
}

func (s *Server) putEndpoint(c *call) (*reply, error) {
	var in policy.EndpointRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	if in.Name != "" && in.Name != c.r.PathValue("name") {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the body and the path name different endpoints").At("/name")
	}
	in.Name = c.r.PathValue("name")
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	out, err := s.o.Policy.PutEndpoint(c.ctx, c.principal, in, e)
	return okTagged(out.Revision, out, err)
}

func (s *Server) deleteEndpoint(c *call) (*reply, error) {
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	return gone(s.o.Policy.RemoveEndpoint(c.ctx, c.principal, c.org, c.r.PathValue("name"), e))
}

// Secrets. A value enters here, is sealed at once, and is shown by nothing.

func (s *Server) listSecrets(c *call) (*reply, error) {
	items, err := s.o.Policy.Secrets(c.principal, c.org)
	return page(c, items, err, func(e grant.SecretInfo) string { return e.Name }, nil)
}

func (s *Server) getSecret(c *call) (*reply, error) {
	items, err := s.o.Policy.Secrets(c.principal, c.org)
	e, err := find(items, err, "secret", func(e grant.SecretInfo) bool { return e.Name == c.r.PathValue("name") })
	return okTagged(e.Revision, e, err)
}

// secretBody is a new value and all its uses.
type secretBody struct {
	Value vault.Value `json:"value"`
	Uses  []vault.Use `json:"uses"`
}

// unquoted is why a document does not decode, without anything of the document: where a name was
// expected there may be the value.
func unquoted(err error) *abi.Error {
	e := abi.AsError(err)
	return abi.Errorf(e.Code, "the body is not the value of a secret and its uses").WithHint(e.Hint)
}

func (s *Server) putSecret(c *call) (*reply, error) {
	var in secretBody
	if err := c.decode(&in); err != nil {
		return nil, unquoted(err)
	}
	defer in.Value.Wipe()
	name, err := abi.ParseSlug("a secret", c.r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if err := policy.Allowed(c.principal, policy.OpSecretPut, c.org); err != nil {
		return nil, err
	}
	if err := vault.Check(in.Uses, in.Value); err != nil {
		return nil, err
	}
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	uses, err := json.Marshal(in.Uses)
	if err != nil {
		return nil, err
	}
	out, err := s.o.Policy.PutSecret(c.ctx, c.principal, policy.SecretRequest{
		Org: c.org, Name: name, Uses: uses,
		Seal: func(version uint64) (json.RawMessage, error) {
			return json.Marshal(s.o.Keyring.Seal(c.org, name, version, in.Value))
		},
	}, e)
	return okTagged(out.Revision, out, err)
}

func (s *Server) deleteSecret(c *call) (*reply, error) {
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	return gone(s.o.Policy.RemoveSecret(c.ctx, c.principal, c.org, c.r.PathValue("name"), e))
}

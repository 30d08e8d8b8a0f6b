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
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	items, err := s.o.Policy.Endpoints(c.principal, org)
	return page(c, items, err, func(e grant.Endpoint) string { return e.Name }, nil)
}

func (s *Server) getEndpoint(c *call) (*reply, error) {
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	items, err := s.o.Policy.Endpoints(c.principal, org)
	if err != nil {
		return nil, err
	}
	for _, e := range items {
		if e.Name == c.r.PathValue("name") && !e.Removed {
			return okTagged(e.Revision, e)
		}
	}
	return nil, abi.Errorf(abi.CodeNotFound, "there is no such endpoint")
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
	if err != nil {
		return nil, err
	}
	return okTagged(out.Revision, out)
}

func (s *Server) deleteEndpoint(c *call) (*reply, error) {
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	if err := s.o.Policy.RemoveEndpoint(c.ctx, c.principal, org, c.r.PathValue("name"), e); err != nil {
		return nil, err
	}
	return &reply{}, nil
}

// Secrets. A value enters here, is sealed at once, and is shown by nothing.

func (s *Server) listSecrets(c *call) (*reply, error) {
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	items, err := s.o.Policy.Secrets(c.principal, org)
	return page(c, items, err, func(e grant.SecretInfo) string { return e.Name }, nil)
}

func (s *Server) getSecret(c *call) (*reply, error) {
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	items, err := s.o.Policy.Secrets(c.principal, org)
	if err != nil {
		return nil, err
	}
	for _, e := range items {
		if e.Name == c.r.PathValue("name") {
			return okTagged(e.Revision, e)
		}
	}
	return nil, abi.Errorf(abi.CodeNotFound, "there is no such secret")
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
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	name, err := abi.ParseSlug("a secret", c.r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if err := policy.Allowed(c.principal, policy.OpSecretPut, org); err != nil {
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
		Org: org, Name: name, Uses: uses,
		Seal: func(version uint64) (json.RawMessage, error) {
			return json.Marshal(s.o.Keyring.Seal(org, name, version, in.Value))
		},
	}, e)
	if err != nil {
		return nil, err
	}
	return okTagged(out.Revision, out)
}

func (s *Server) deleteSecret(c *call) (*reply, error) {
	org, err := c.org()
	if err != nil {
		return nil, err
	}
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	if err := s.o.Policy.RemoveSecret(c.ctx, c.principal, org, c.r.PathValue("name"), e); err != nil {
		return nil, err
	}
	return &reply{}, nil
}

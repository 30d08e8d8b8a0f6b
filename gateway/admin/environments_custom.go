package admin

import (
	"bytes"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// ownBody is what a client says of an environment of its organisation's own. What it was shown it may
// send back: the members that are not its to set must then be as they are.
type ownBody struct {
	Slug    string               `json:"slug,omitempty"`
	Ref     abi.EnvironmentRef   `json:"ref,omitempty"`
	Org     string               `json:"org,omitempty"`
	Base    abi.EnvironmentRef   `json:"base,omitempty"`
	Reach   abi.Reach            `json:"reachCeiling,omitempty"`
	Family  string               `json:"enforcement,omitempty"`
	MaxData abi.Classification   `json:"maxDataClassification,omitempty"`
	Allowed *[]abi.CapabilityRef `json:"allowedCapabilities,omitempty"`
	Limits  map[string]int64     `json:"limits,omitempty"`

	BuiltIn   json.RawMessage `json:"isBuiltIn,omitempty"`
	Waives    json.RawMessage `json:"waives,omitempty"`
	Available json.RawMessage `json:"available,omitempty"`
	Revision  uint64          `json:"revision,omitempty"`
}

// markers are what says that an environment is the server's own.
var markers = []string{"isBuiltIn", "waives", "available"}

// unmarked refuses a body that sets a marker (P10). One that says what have shows is no change.
func unmarked(body []byte, have *environment.Environment) *abi.Error {
	var raw, is map[string]json.RawMessage
	if json.Unmarshal(body, &raw) != nil {
		return nil // decoding it strictly says what is wrong
	}
	if have != nil {
		if shown, err := json.Marshal(have); err != nil || json.Unmarshal(shown, &is) != nil {
			is = nil
		}
	}
	for _, m := range markers {
		if v, there := raw[m]; there && !bytes.Equal(v, is[m]) {
			return abi.Errorf(abi.CodeMarkerReserved, "%s is the server's to set", m).At("/" + m)
		}
	}
	return nil
}

// ownEnvironment reads the body into a request about the environment called slug.
func (c *call) ownEnvironment(slug string) (policy.EnvironmentRequest, error) {
	var in ownBody
	if err := c.decode(&in); err != nil {
		return policy.EnvironmentRequest{}, err
	}
	switch {
	case in.Org != "" && in.Org != c.org:
		return policy.EnvironmentRequest{}, abi.Errorf(abi.CodeInvalidRequest, "the body and the path name different organisations").At("/org")
	case slug != "" && in.Slug != "" && in.Slug != slug:
		return policy.EnvironmentRequest{}, abi.Errorf(abi.CodeInvalidRequest, "the body and the path name different environments").At("/slug")
	}
	if slug == "" {
		slug = in.Slug
	}
	if in.Ref != "" && in.Ref != abi.MakeEnvironmentRef(slug) {
		return policy.EnvironmentRequest{}, abi.Errorf(abi.CodeInvalidRequest, "the ref is not the slug's").At("/ref")
	}
	r := policy.EnvironmentRequest{Org: c.org, Slug: slug, Base: in.Base, Reach: in.Reach, MaxData: in.MaxData, Family: in.Family, Limits: in.Limits}
	if in.Allowed != nil {
		r.Allowed = append([]abi.CapabilityRef{}, *in.Allowed...) // an empty list is one, and refused
	}
	return r, nil
}

func (s *Server) listOwnEnvironments(c *call) (*reply, error) {
	items, err := s.o.Policy.OwnEnvironments(c.principal, c.org)
	return page(c, shown(c, items), err, bySlug, nil)
}

func (s *Server) getOwnEnvironment(c *call) (*reply, error) {
	e, err := s.o.Policy.OwnEnvironment(c.principal, c.org, c.r.PathValue("slug"))
	return okTagged(e.Revision, shown(c, []environment.Environment{e})[0], err)
}

func (s *Server) createOwnEnvironment(c *call) (*reply, error) {
	in, err := c.ownEnvironment("")
	if err != nil {
		return nil, err
	}
	if err := unmarked(c.body, nil); err != nil {
		return nil, err
	}
	e, err := s.o.Policy.CreateEnvironment(c.ctx, c.principal, in)
	return tagged(e.Revision)(created("/v1/orgs/"+c.org+"/environments/"+e.Slug, e, err))
}

func (s *Server) putOwnEnvironment(c *call) (*reply, error) {
	in, err := c.ownEnvironment(c.r.PathValue("slug"))
	if err != nil {
		return nil, err
	}
	have, err := s.o.Policy.OwnEnvironment(c.principal, c.org, in.Slug)
	if err != nil {
		return nil, err
	}
	if err := unmarked(c.body, &have); err != nil {
		return nil, err
	}
	expect, err := c.expect()
	if err != nil {
		return nil, err
	}
	e, err := s.o.Policy.ReplaceEnvironment(c.ctx, c.principal, in, expect)
	return okTagged(e.Revision, e, err)
}

func (s *Server) deleteOwnEnvironment(c *call) (*reply, error) {
	expect, err := c.expect()
	if err != nil {
		return nil, err
	}
	return gone(s.o.Policy.DeleteEnvironment(c.ctx, c.principal, c.org, c.r.PathValue("slug"), expect))
}

// tagged gives an answer the ETag of a revision.
func tagged(revision uint64) func(*reply, error) (*reply, error) {
	return func(r *reply, err error) (*reply, error) {
		if r != nil {
			r.etag = etag(revision)
		}
		return r, err
	}
}

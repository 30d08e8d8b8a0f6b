package policy

import (
	"context"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// PutEndpoint makes or changes a rule for outgoing requests. What the rule's form would not
// enforce is refused by [egress.Compile], and stored is what it compiled to.
func (s *Service) PutEndpoint(ctx context.Context, p session.Principal, r EndpointRequest, e Expect) (grant.Endpoint, error) {
	var out grant.Endpoint
	in := intent{by: p, op: OpEndpointPut, org: r.Org, target: r.Name, fields: []string{"rule", "clearance", "label", "loopback"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if _, err := abi.ParseSlug("an endpoint", r.Name); err != nil {
			return nil, abi.AsError(err).At("/name")
		}
		var old grant.Endpoint
		if have := o.endpoints[r.Name]; have != nil {
			old = have.record
		}
		if err := e.check(present(old.Revision, old.Removed)); err != nil {
			return nil, err
		}
		compiled, err := egress.Compile(r.Name, r.Rule, r.Clearance.Sink(), r.Label.Source(), r.Loopback)
		if err != nil {
			return nil, err
		}
		out = grant.Endpoint{
			Org: r.Org, Name: r.Name, Rule: compiled.Rule, Clearance: compiled.Clearance, Label: compiled.Label, Loopback: compiled.Loopback,
			Revision: old.Revision + 1, UpdatedBy: p.Name(), UpdatedAt: s.clock().UTC(),
		}
		return &change{records: []any{out}, org: r.Org}, nil
	})
	return out, err
}

// present is the revision of what is there: 0 for something that was removed.
func present(revision uint64, removed bool) uint64 {
	if removed {
		return 0
	}
	return revision
}

// RemoveEndpoint takes a rule away. Running invocations lose it at their next host call.
func (s *Service) RemoveEndpoint(ctx context.Context, p session.Principal, org, name string, e Expect) error {
	return s.apply(ctx, intent{by: p, op: OpEndpointDrop, org: org, target: name}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil || o.endpoints[name] == nil || o.endpoints[name].record.Removed {
			return nil, notThere("endpoint", name)
		}
		rec := o.endpoints[name].record
		if err := e.check(rec.Revision); err != nil {
			return nil, err
		}
		rec.Removed, rec.Revision, rec.UpdatedBy, rec.UpdatedAt = true, rec.Revision+1, p.Name(), s.clock().UTC()
		return &change{records: []any{rec}, org: org}, nil
	})
}

// Endpoints lists an organisation's rules.
func (s *Service) Endpoints(p session.Principal, org string) (out []grant.Endpoint, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for _, e := range sorted(o.endpoints) {
			if !e.record.Removed {
				out = append(out, e.record)
			}
		}
		return nil
	})
	return out, err
}

// PutSecret stores a sealed value. The value itself never gets here.
func (s *Service) PutSecret(ctx context.Context, p session.Principal, r SecretRequest, e Expect) (grant.SecretInfo, error) {
	var out grant.Secret
	in := intent{by: p, op: OpSecretPut, org: r.Org, target: r.Name, fields: []string{"uses", "value"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if _, err := abi.ParseSlug("a secret", r.Name); err != nil {
			return nil, abi.AsError(err).At("/name")
		}
		if r.Seal == nil || !json.Valid(r.Uses) {
			return nil, abi.Errorf(abi.CodeInvalidRequest, "a secret has a value and says how it may be used")
		}
		old := o.secrets[r.Name]
		if err := e.check(present(old.Revision, old.Removed)); err != nil {
			return nil, err
		}
		sealed, err := r.Seal(old.Version + 1)
		if err != nil {
			return nil, err
		}
		out = grant.Secret{
			Org: r.Org, Name: r.Name, Uses: r.Uses, Sealed: sealed, Version: old.Version + 1,
			Revision: old.Revision + 1, UpdatedBy: p.Name(), UpdatedAt: s.clock().UTC(),
		}
		return &change{records: []any{out}, org: r.Org}, nil
	})
	return out.Info(), err
}

// RemoveSecret takes a secret away and overwrites its sealed value.
func (s *Service) RemoveSecret(ctx context.Context, p session.Principal, org, name string, e Expect) error {
	return s.apply(ctx, intent{by: p, op: OpSecretDrop, org: org, target: name}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil || o.secrets[name].Revision == 0 || o.secrets[name].Removed {
			return nil, notThere("secret", name)
		}
		rec := o.secrets[name]
		if err := e.check(rec.Revision); err != nil {
			return nil, err
		}
		rec.Removed, rec.Sealed, rec.Revision, rec.UpdatedBy, rec.UpdatedAt = true, json.RawMessage("{}"), rec.Revision+1, p.Name(), s.clock().UTC()
		return &change{records: []any{rec}, org: org}, nil
	})
}

// Secrets lists what may be shown of an organisation's secrets.
func (s *Service) Secrets(p session.Principal, org string) (out []grant.SecretInfo, err error) {
	err = s.read(p, OpReadGuarded, org, func(_ *state, o *orgState) error {
		for _, r := range sorted(o.secrets) {
			if !r.Removed {
				out = append(out, r.Info())
			}
		}
		return nil
	})
	return out, err
}

// SealedSecret is for the vault: it asks nobody's role and answers from memory.
func (s *Service) SealedSecret(org, name string) (grant.Secret, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := s.state.orgs[org]
	if o == nil {
		return grant.Secret{}, false
	}
	r, ok := o.secrets[name]
	return r, ok && !r.Removed
}

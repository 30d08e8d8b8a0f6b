package policy

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/host/authority"
)

type Service struct{}

var errNotYet = abi.Errorf(abi.CodeNotReady, "not built")

func Open(ctx context.Context, st store.Store, o Options) (*Service, error) { return nil, errNotYet }
func (s *Service) Snapshot() *gate.Snapshot                                 { return nil }
func (s *Service) OnChange(fn func(*gate.Snapshot))                         {}
func (s *Service) Bootstrap(ctx context.Context) (First, error)             { return First{}, errNotYet }

func (s *Service) Authenticate(token string) (Identity, error) { return Identity{}, errNotYet }
func (s *Service) Facts(ctx context.Context, c catalogue.Catalogue, snap *gate.Snapshot, sess *session.Session, ref abi.CapabilityRef, declared abi.Classification) gate.Facts {
	return gate.Facts{}
}
func (s *Service) ChildFacts(ctx context.Context, c catalogue.Catalogue, snap *gate.Snapshot, parent *gate.Facts, a *authority.Authority, label abi.Classification, ref abi.CapabilityRef) gate.Facts {
	return gate.Facts{}
}

// Authorize: stands may be nil; the session being closed or expired is always asked.
func (s *Service) Authorize(snap *gate.Snapshot, f *gate.Facts, d *gate.Decision, invocation string, deadline time.Time, stands func() *abi.Error) *authority.Authority {
	return nil
}
func (s *Service) Release(ctx context.Context, sessionID string, label abi.Classification) error {
	return errNotYet
}

func (s *Service) CreateOrg(ctx context.Context, p session.Principal, id string) (Org, error) {
	return Org{}, errNotYet
}
func (s *Service) Orgs(p session.Principal) ([]Org, error) { return nil, errNotYet }
func (s *Service) CreateSpace(ctx context.Context, p session.Principal, r SpaceRequest) (space.Space, error) {
	return space.Space{}, errNotYet
}
func (s *Service) Spaces(p session.Principal, org string) ([]space.Space, error) {
	return nil, errNotYet
}
func (s *Service) CreateGrant(ctx context.Context, p session.Principal, r GrantRequest) (grant.Grant, error) {
	return grant.Grant{}, errNotYet
}
func (s *Service) RevokeGrant(ctx context.Context, p session.Principal, org, id string) (grant.Revocation, error) {
	return grant.Revocation{}, errNotYet
}
func (s *Service) Grants(p session.Principal, org string) ([]GrantStatus, error) {
	return nil, errNotYet
}
func (s *Service) CreateEnvironmentGrant(ctx context.Context, p session.Principal, r EnvironmentGrantRequest) (grant.EnvironmentGrant, error) {
	return grant.EnvironmentGrant{}, errNotYet
}
func (s *Service) RevokeEnvironmentGrant(ctx context.Context, p session.Principal, org, id string) (grant.Revocation, error) {
	return grant.Revocation{}, errNotYet
}

func (s *Service) PutBiome(ctx context.Context, p session.Principal, r BiomeRequest) (b Biome, created bool, err error) {
	return Biome{}, false, errNotYet
}
func (s *Service) CheckBiome(p session.Principal, org string, m *abi.Manifest) error {
	return errNotYet
}
func (s *Service) Biome(p session.Principal, org, name string) (Biome, error) {
	return Biome{}, errNotYet
}
func (s *Service) Biomes(p session.Principal, org string) ([]Biome, error) { return nil, errNotYet }
func (s *Service) Uploads(p session.Principal, org, name string) ([]Upload, error) {
	return nil, errNotYet
}
func (s *Service) SetBiomeDisabled(ctx context.Context, p session.Principal, org, name string, disabled bool, e Expect) (Biome, error) {
	return Biome{}, errNotYet
}
func (s *Service) Install(ctx context.Context, p session.Principal, r InstallRequest, e Expect) (grant.Install, error) {
	return grant.Install{}, errNotYet
}
func (s *Service) Uninstall(ctx context.Context, p session.Principal, org, biome string, e Expect) (grant.Revocation, error) {
	return grant.Revocation{}, errNotYet
}
func (s *Service) InstallOf(p session.Principal, org, biome string) (grant.Install, error) {
	return grant.Install{}, errNotYet
}
func (s *Service) Installs(p session.Principal, org string) ([]grant.Install, error) {
	return nil, errNotYet
}

func (s *Service) Environments() []environment.Environment { return nil }
func (s *Service) SetEnvironmentLimits(ctx context.Context, p session.Principal, ref abi.EnvironmentRef, changes map[string]int64, e Expect) (environment.Environment, error) {
	return environment.Environment{}, errNotYet
}
func (s *Service) PutOverride(ctx context.Context, p session.Principal, r OverrideRequest, e Expect) (environment.Override, error) {
	return environment.Override{}, errNotYet
}
func (s *Service) Overrides(p session.Principal, org string) ([]environment.Override, error) {
	return nil, errNotYet
}

func (s *Service) PutEndpoint(ctx context.Context, p session.Principal, r EndpointRequest, e Expect) (grant.Endpoint, error) {
	return grant.Endpoint{}, errNotYet
}
func (s *Service) RemoveEndpoint(ctx context.Context, p session.Principal, org, name string, e Expect) error {
	return errNotYet
}
func (s *Service) Endpoints(p session.Principal, org string) ([]grant.Endpoint, error) {
	return nil, errNotYet
}
func (s *Service) PutSecret(ctx context.Context, p session.Principal, r SecretRequest, e Expect) (grant.SecretInfo, error) {
	return grant.SecretInfo{}, errNotYet
}
func (s *Service) RemoveSecret(ctx context.Context, p session.Principal, org, name string, e Expect) error {
	return errNotYet
}
func (s *Service) Secrets(p session.Principal, org string) ([]grant.SecretInfo, error) {
	return nil, errNotYet
}

// SealedSecret is for the vault alone.
func (s *Service) SealedSecret(org, name string) (grant.Secret, bool) { return grant.Secret{}, false }

func (s *Service) OpenSession(ctx context.Context, p session.Principal, r SessionRequest) (sess session.Session, token string, err error) {
	return session.Session{}, "", errNotYet
}
func (s *Service) CloseSession(ctx context.Context, p session.Principal, org, id string) (session.Session, error) {
	return session.Session{}, errNotYet
}
func (s *Service) Session(ctx context.Context, p session.Principal, org, id string) (session.Session, error) {
	return session.Session{}, errNotYet
}
func (s *Service) Sessions(ctx context.Context, p session.Principal, org string) ([]session.Session, error) {
	return nil, errNotYet
}
func (s *Service) IssueToken(ctx context.Context, p session.Principal, r TokenRequest) (t TokenStatus, token string, err error) {
	return TokenStatus{}, "", errNotYet
}
func (s *Service) RevokeToken(ctx context.Context, p session.Principal, org, id string) error {
	return errNotYet
}
func (s *Service) Tokens(p session.Principal, org string) ([]TokenStatus, error) {
	return nil, errNotYet
}

// Allowed is for faces that read other things (audit): the one role table.
func Allowed(p session.Principal, op Op, org string) error { return errNotYet }

type Op string

package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Options configures a [Service].
type Options struct {
	// Dev makes trusted-dev available. The caller sets it only when the server runs with --dev
	// on loopback and the data directory was made under --dev (S19).
	Dev bool
	// Auditor records every change before it is made. Without one nothing can be changed.
	Auditor Auditor
	// Sessions bounds the open sessions of one organisation; 0 is the table's default.
	Sessions int64
	// Uploads bounds the versions that are kept of one organisation's biomes, all together; 0 is the
	// table's default.
	Uploads int64
	// Approvals bounds the requests of one organisation that wait for a person; 0 is the table's default.
	Approvals int64
	// Rates is what an organisation begins with; what is 0 is the default.
	Rates gate.Rates
	// Clock is the machine's time; nil is [time.Now].
	Clock func() time.Time
	// Mark is the newest change as it is remembered outside the store; nil keeps none, and a store that
	// was put back to an earlier time is not noticed.
	Mark *Mark
	// AcceptMark has the store taken as it is, and the machine's clock too, and the mark made anew: for
	// a store that was put back on purpose.
	AcceptMark  bool
	checkpoints uint64 // in place of checkpointEvery, for tests
	// Seen is a time that is known to have been: the audit log's last. Policy's clock is not before it.
	Seen time.Time
	// Keep, unless nil, is given the tokens of the first start before they are good for
	// anything. When it fails nothing is made, and the next start tries again with other tokens:
	// so a crash between the two loses no server its operator.
	Keep func(First) error
}

// Auditor records administration. Admin returns when the event is durable; an error means that
// the change is not made: AUDIT_UNAVAILABLE. It is called from one goroutine at a time and must
// not call the service back.
type Auditor interface {
	Admin(ctx context.Context, e Event) error
}

// Event is one change that is about to be made, or one that was refused.
type Event struct {
	Name       string    `json:"name"` // grant.created, …: see [Events]
	Org        string    `json:"org"`
	Principal  string    `json:"principal"`
	Role       string    `json:"role"`
	Target     string    `json:"target"` // id or name of what is changed
	Fields     []string  `json:"fields"` // names of what the request set, never values (P6)
	Generation uint64    `json:"generation,omitempty"`
	Code       abi.Code  `json:"code,omitempty"` // why the change was refused or failed; "" when it is about to be made
	At         time.Time `json:"at"`
}

// Expect is the revision a change starts from, as If-Match gives it. A change of what is there
// already needs one.
type Expect int64

const (
	// Unstated is no If-Match: fine for what is not there yet, PRECONDITION_REQUIRED otherwise.
	Unstated Expect = -1
	// Absent is If-None-Match: *, which what is there already does not satisfy: PRECONDITION_FAILED
	// (RFC 9110, 13.1.2).
	Absent Expect = 0
)

// Org is an organisation.
type Org struct {
	ID        string    `json:"id"`
	CreatedBy string    `json:"createdBy"`
	CreatedAt time.Time `json:"createdAt"`
}

// Biome is an organisation's biome of one name, over all its uploads.
type Biome struct {
	Org       string      `json:"org"`
	Name      string      `json:"name"`
	Digest    string      `json:"digest"` // of the newest upload
	Stage     grant.Stage `json:"stage"`
	Disabled  bool        `json:"disabled"`
	Archived  bool        `json:"archived,omitempty"`
	Revision  uint64      `json:"revision"`
	UpdatedBy string      `json:"updatedBy"`
	UpdatedAt time.Time   `json:"updatedAt"`
}

// Upload is one version of a biome. It is immutable.
type Upload struct {
	Org       string          `json:"org"`
	Biome     string          `json:"biome"`
	Digest    string          `json:"digest"`
	Manifest  json.RawMessage `json:"manifest"`           // as uploaded
	Functions []string        `json:"functions,omitzero"` // host functions its module imports; nil when that was not recorded
	CreatedBy string          `json:"createdBy"`
	CreatedAt time.Time       `json:"createdAt"`
}

// BiomeRequest records an admitted upload.
type BiomeRequest struct {
	Org      string
	Digest   string // hex SHA-256 over length-prefixed manifest and module
	Manifest []byte // as uploaded
	// Functions are the host functions that the module imports, for its permission document. nil is
	// "not known", which counts as all that its reach allows.
	Functions []string
}

// SpaceStatus is a space with its URI.
type SpaceStatus struct {
	space.Space
	URI space.URI `json:"uri"`
}

// SpaceRequest makes a space; its parent is named by id or URI. What is not said is the parent's, or public and regulated for a
// root.
type SpaceRequest struct {
	Org        string             `json:"org"`
	ID         string             `json:"id"`
	Kind       space.Kind         `json:"kind"`
	Parent     string             `json:"parent,omitempty"`
	Production bool               `json:"production,omitempty"`
	Floor      abi.Classification `json:"floor,omitempty"`
	Clearance  abi.Classification `json:"clearance,omitempty"`
}

// GrantRequest makes a grant. Replaces, unless "", names a grant in force for the same subject,
// capability and environment: it ends in the same change.
type GrantRequest struct {
	Org         string             `json:"org"`
	Subject     abi.Subject        `json:"subject"`
	Capability  abi.CapabilityRef  `json:"capability"`
	Environment abi.EnvironmentRef `json:"environment"`
	Globs       []string           `json:"globs,omitempty"`
	URLs        []string           `json:"urls,omitempty"`
	Spaces      []string           `json:"spaces,omitempty"`
	Expires     *time.Time         `json:"expires,omitempty"`
	Rate        *grant.Rate        `json:"rate,omitempty"`
	Approval    bool               `json:"approval,omitempty"` // a person has to approve every use
	Replaces    string             `json:"replaces,omitempty"`
	Obligations []grant.Obligation `json:"obligations,omitempty"`
}

// GrantStatus is a grant with its revocation, if there is one (X34).
type GrantStatus struct {
	grant.Grant
	Revoked *grant.Revocation `json:"revoked,omitempty"`
}

// EnvironmentGrantRequest lets a principal open sessions for a subject.
type EnvironmentGrantRequest struct {
	Org         string             `json:"org"`
	Principal   string             `json:"principal"`
	Subject     abi.Subject        `json:"subject"`
	Environment abi.EnvironmentRef `json:"environment"`
	Spaces      []string           `json:"spaces,omitempty"`
	Expires     *time.Time         `json:"expires,omitempty"`
}

// ApproveGrantRequest lets a principal approve.
type ApproveGrantRequest struct {
	Org        string     `json:"org"`
	Principal  string     `json:"principal"`
	Capability string     `json:"capability"` // a ref, or "*"
	Expires    *time.Time `json:"expires,omitempty"`
}

// InstallRequest admits one digest of a biome. A list that is absent keeps nothing.
type InstallRequest struct {
	Org          string               `json:"org"`
	Biome        string               `json:"biome"`
	Digest       string               `json:"digest"`
	Environments []abi.EnvironmentRef `json:"environments"`
	Calls        []abi.CapabilityRef  `json:"calls,omitempty"`
	Endpoints    []string             `json:"endpoints,omitempty"`
	Secrets      []string             `json:"secrets,omitempty"`
	Config       grant.Config         `json:"config,omitempty"`
	Obligations  []grant.Obligation   `json:"obligations,omitempty"`
	// Alongside leaves install grants of other digests standing.
	Alongside bool `json:"alongside,omitempty"`
	// Permissions, unless "", is the digest of the permission document that was looked at: with another one
	// nothing is installed.
	Permissions string `json:"permissions,omitempty"`
}

// OverrideRequest caps a built-in environment for one organisation.
type OverrideRequest struct {
	Org         string             `json:"org"`
	Environment abi.EnvironmentRef `json:"environment"`
	MaxData     abi.Classification `json:"maxDataClassification"`
}

// EndpointRequest makes or changes an endpoint rule. An absent clearance is public, an absent
// label regulated (S3).
type EndpointRequest struct {
	Org       string             `json:"org"`
	Name      string             `json:"name"`
	Rule      egress.Rule        `json:"rule"`
	Clearance abi.Classification `json:"clearance,omitempty"`
	Label     abi.Classification `json:"label,omitempty"`
	Loopback  bool               `json:"loopback,omitempty"`
}

// SecretRequest stores a secret. The value never gets here: the caller seals it.
type SecretRequest struct {
	Org  string
	Name string
	Uses json.RawMessage // the vault's document, checked by it
	// Seal seals the value for the version it will have and answers a JSON document. It is
	// called at most once, and must not call the service.
	Seal func(version uint64) (json.RawMessage, error)
}

// SessionRequest opens a session; its space is named by id or URI. An absent space is the organisation's own; an absent
// environment follows from the space's kind (X31); an absent clearance is the space's.
type SessionRequest struct {
	Org         string             `json:"org"`
	Subject     abi.Subject        `json:"subject"`
	User        abi.Subject        `json:"user,omitempty"`
	Space       string             `json:"space,omitempty"`
	Environment abi.EnvironmentRef `json:"environment,omitempty"`
	Files       bool               `json:"files,omitempty"` // give the session a workspace of its own
	Clearance   abi.Classification `json:"clearance,omitempty"`
	Expires     *time.Time         `json:"expires,omitempty"`
}

// TokenRequest issues a token for a principal, which is made when it is not there yet. A user that
// is absent is the principal's, or none; a clearance likewise, or the role's.
type TokenRequest struct {
	Org       string             `json:"org"`
	Principal string             `json:"principal"` // a slug
	Role      session.Role       `json:"role"`
	User      abi.Subject        `json:"user,omitempty"`
	Clearance abi.Classification `json:"clearance,omitempty"`
	Expires   *time.Time         `json:"expires,omitempty"`
}

// TokenStatus is what anyone may be shown of a token.
type TokenStatus struct {
	ID        string             `json:"id"`
	Kind      session.Kind       `json:"kind"`
	Org       string             `json:"org"`
	Principal string             `json:"principal,omitempty"`
	Role      session.Role       `json:"role,omitempty"`
	User      abi.Subject        `json:"user,omitempty"`
	Clearance abi.Classification `json:"clearance,omitempty"`
	Session   string             `json:"session,omitempty"`
	Expires   *time.Time         `json:"expires,omitempty"`
	CreatedBy string             `json:"createdBy"`
	CreatedAt time.Time          `json:"createdAt"`
	Revoked   bool               `json:"revoked"`
}

// Identity is who a token stands for: a principal or a session, never both.
type Identity struct {
	Token     string // its id
	Principal session.Principal
	Session   *session.Session // with the mark it has now; must not be changed
}

// First is what the first start hands out, once.
type First struct {
	OperatorToken string // "" when it was handed out before
	DevToken      string // of a session of user:dev in trusted-dev; only under --dev
}

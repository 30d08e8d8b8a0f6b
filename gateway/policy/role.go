package policy

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Op is something a principal may want to do. Changes are named as their audit events are.
type Op string

const (
	OpRead          Op = "read"      // what an organisation has: biomes, installs, grants, environments, spaces
	OpReadGuarded   Op = "inspect"   // sessions, tokens, secrets' names, endpoints
	OpReadAudit     Op = "audit"     // the audit log
	OpReadAuditHead Op = "auditHead" // the log's signed head, which covers every organisation
	OpReadApprovals Op = "approvals" // requests that wait for a person, as far as the reader is cleared

	OpOrgCreate    Op = "org.created"
	OpSpaceCreate  Op = "space.created"
	OpGrantCreate  Op = "grant.created"
	OpGrantRevoke  Op = "grant.revoked"
	OpEnvGrant     Op = "environment-grant.created"
	OpEnvRevoke    Op = "environment-grant.revoked"
	OpUpload       Op = "biome.uploaded"
	OpDisable      Op = "biome.disabled"
	OpEnable       Op = "biome.enabled"
	OpInstall      Op = "install.created"
	OpUninstall    Op = "install.revoked"
	OpLifecycle    Op = "capability.lifecycle"
	OpPromote      Op = "biome.promotion.requested"
	OpRollback     Op = "biome.rolled-back"
	OpArchive      Op = "biome.archived"
	OpLimits       Op = "environment.updated"
	OpEnvCreate    Op = "environment.created" // and its changes, which are environment.updated
	OpEnvDelete    Op = "environment.deleted"
	OpOverride     Op = "override.updated"
	OpOverrideDrop Op = "override.removed"
	OpRates        Op = "rates.updated"
	OpEndpointPut  Op = "endpoint.updated"
	OpEndpointDrop Op = "endpoint.removed"
	OpSecretPut    Op = "secret.updated"
	OpSecretDrop   Op = "secret.removed"
	OpSessionOpen  Op = "session.opened"
	OpSessionClose Op = "session.closed"
	OpDeclassify   Op = "declassify.requested" // in the place of a session
	OpTokenIssue   Op = "token.issued"
	OpTokenRevoke  Op = "token.revoked"

	OpApprovalApprove Op = "approval.approved"
	OpApprovalReject  Op = "approval.rejected"
	OpApproveGrant    Op = "approve-grant.created"
	OpApproveRevoke   Op = "approve-grant.revoked"

	// What no principal does: the session that asks, and the gateway.
	OpApprovalRequested Op = "approval.requested"
	OpApprovalWithdrawn Op = "approval.withdrawn"
	OpApprovalUsed      Op = "approval.consumed"
	OpCollect           Op = "expired.collected"
)

var (
	operatorOnly = []session.Role{session.Operator}
	admins       = []session.Role{session.Operator, session.OrgAdmin}
	uploaders    = []session.Role{session.Operator, session.OrgAdmin, session.Author}
	inspectors   = []session.Role{session.Operator, session.OrgAdmin, session.Auditor}
	deciders     = []session.Role{session.Operator, session.OrgAdmin, session.Approver}
	anyone       = []session.Role{session.Operator, session.OrgAdmin, session.Author, session.Approver, session.Auditor}
)

// roles is the one table of who may do what. An operator acts in every organisation, everyone
// else in their own. What is not in the table nobody may do.
var roles = map[Op][]session.Role{
	OpRead:          anyone,
	OpReadGuarded:   inspectors,
	OpReadAudit:     inspectors,
	OpReadAuditHead: inspectors,
	OpReadApprovals: {session.Operator, session.OrgAdmin, session.Approver, session.Auditor},

	OpOrgCreate:    operatorOnly,
	OpSpaceCreate:  admins,
	OpGrantCreate:  admins,
	OpGrantRevoke:  admins,
	OpEnvGrant:     admins,
	OpEnvRevoke:    admins,
	OpUpload:       uploaders,
	OpDisable:      admins,
	OpEnable:       admins,
	OpInstall:      admins,
	OpUninstall:    admins,
	OpLifecycle:    admins,
	OpPromote:      uploaders,
	OpRollback:     admins,
	OpArchive:      admins,
	OpLimits:       operatorOnly,
	OpEnvCreate:    admins,
	OpEnvDelete:    admins,
	OpOverride:     admins,
	OpOverrideDrop: admins,
	OpRates:        admins,
	OpEndpointPut:  admins,
	OpEndpointDrop: admins,
	OpSecretPut:    admins,
	OpSecretDrop:   admins,
	OpSessionOpen:  admins, // others with an environment grant
	OpSessionClose: admins,
	OpDeclassify:   admins,
	OpTokenIssue:   admins,
	OpTokenRevoke:  admins,

	OpApprovalApprove: deciders,
	OpApprovalReject:  deciders,
	OpApproveGrant:    admins,
	OpApproveRevoke:   admins,
}

// Allowed refuses, with FORBIDDEN, what a principal's role does not let it do in an
// organisation. The answer is the same for an organisation that is not there.
func Allowed(p session.Principal, op Op, org string) error {
	if !slices.Contains(roles[op], p.Role) {
		return abi.Errorf(abi.CodeForbidden, "the role %s may not do this", abi.Quote(string(p.Role)))
	}
	if p.Role != session.Operator && (p.Org != org || org == "") {
		return abi.Errorf(abi.CodeForbidden, "only an operator acts in another organisation")
	}
	return nil
}

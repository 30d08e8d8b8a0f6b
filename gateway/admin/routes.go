package admin

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// bodyKind is what a route reads.
type bodyKind uint8

const (
	bodyNone bodyKind = iota
	bodyJSON
	bodyModule
)

func (b bodyKind) mediaType() string {
	if b == bodyModule {
		return "application/wasm"
	}
	return "application/json"
}

// route is one operation of the control plane.
type route struct {
	method  string
	path    string // pattern of http.ServeMux
	open    bool   // needs no token
	op      policy.Op
	body    bodyKind
	query   []string // parameters it takes beside org
	empty   bool     // a success has no body: 204
	changes bool     // a POST that makes nothing: 200
	waits   bool     // a success waits for somebody: 202
	summary string   // for the document
	handle  func(*Server, *call) (*reply, error)
}

var paging = []string{"after", "limit"}

// routes is the whole surface of the control plane. openapi.json is made from it, and a test
// holds that every route but the document wants a token (PF-A13).
func (s *Server) routes() []route { return routeTable }

var routeTable []route

func init() {
	routeTable = []route{
		{method: http.MethodGet, path: "/openapi.json", open: true, summary: "This document", handle: (*Server).getDocument},

		{method: http.MethodGet, path: "/v1/orgs", op: policy.OpRead, query: paging, summary: "List organisations", handle: (*Server).listOrgs},
		{method: http.MethodPost, path: "/v1/orgs", op: policy.OpOrgCreate, body: bodyJSON, summary: "Make an organisation", handle: (*Server).createOrg},
		{method: http.MethodGet, path: "/v1/orgs/{org}/overrides", op: policy.OpRead, query: paging, summary: "List an organisation's ceilings", handle: (*Server).listOverrides},
		{method: http.MethodPut, path: "/v1/orgs/{org}/overrides/{slug}", op: policy.OpOverride, body: bodyJSON, summary: "Tighten a built-in environment for an organisation", handle: (*Server).putOverride},
		{method: http.MethodGet, path: "/v1/orgs/{org}/overrides/{slug}", op: policy.OpRead, summary: "Show an organisation's ceiling", handle: (*Server).getOverride},
		{method: http.MethodDelete, path: "/v1/orgs/{org}/overrides/{slug}", op: policy.OpOverrideDrop, empty: true, summary: "Remove an organisation's ceiling", handle: (*Server).deleteOverride},
		{method: http.MethodGet, path: "/v1/orgs/{org}/environments", op: policy.OpRead, query: paging, summary: "List an organisation's own environments", handle: (*Server).listOwnEnvironments},
		{method: http.MethodPost, path: "/v1/orgs/{org}/environments", op: policy.OpEnvCreate, body: bodyJSON, summary: "Derive an environment from a built-in one", handle: (*Server).createOwnEnvironment},
		{method: http.MethodGet, path: "/v1/orgs/{org}/environments/{slug}", op: policy.OpRead, summary: "Show an organisation's own environment", handle: (*Server).getOwnEnvironment},
		{method: http.MethodPut, path: "/v1/orgs/{org}/environments/{slug}", op: policy.OpEnvCreate, body: bodyJSON, summary: "Change an organisation's own environment", handle: (*Server).putOwnEnvironment},
		{method: http.MethodDelete, path: "/v1/orgs/{org}/environments/{slug}", op: policy.OpEnvDelete, empty: true, summary: "Remove an organisation's own environment that no session is open in", handle: (*Server).deleteOwnEnvironment},
		{method: http.MethodGet, path: "/v1/orgs/{org}/rates", op: policy.OpRead, summary: "Show how often an organisation's subjects and clients may invoke", handle: (*Server).getRates},
		{method: http.MethodPut, path: "/v1/orgs/{org}/rates", op: policy.OpRates, body: bodyJSON, summary: "Set how often an organisation's subjects and clients may invoke", handle: (*Server).putRates},

		{method: http.MethodGet, path: "/v1/environments", op: policy.OpRead, query: append([]string{"builtin"}, paging...), summary: "List environments", handle: (*Server).listEnvironments},
		{method: http.MethodPost, path: "/v1/environments", op: policy.OpLimits, body: bodyJSON, summary: "Refused: the built-in set is closed", handle: (*Server).createEnvironment},
		{method: http.MethodGet, path: "/v1/environments/{slug}", op: policy.OpRead, summary: "Show an environment", handle: (*Server).getEnvironment},
		{method: http.MethodPut, path: "/v1/environments/{slug}", op: policy.OpLimits, body: bodyJSON, summary: "Set an environment's limits", handle: (*Server).putEnvironment},
		{method: http.MethodDelete, path: "/v1/environments/{slug}", op: policy.OpLimits, summary: "Refused: the built-in set is closed", handle: (*Server).deleteEnvironment},

		{method: http.MethodGet, path: "/v1/spaces", op: policy.OpRead, query: paging, summary: "List spaces", handle: (*Server).listSpaces},
		{method: http.MethodGet, path: "/v1/spaces/{id}", op: policy.OpRead, summary: "Show a space", handle: (*Server).getSpace},
		{method: http.MethodPost, path: "/v1/spaces", op: policy.OpSpaceCreate, body: bodyJSON, summary: "Make a space", handle: (*Server).createSpace},

		{method: http.MethodGet, path: "/v1/biomes", op: policy.OpRead, query: paging, summary: "List biomes", handle: (*Server).listBiomes},
		{method: http.MethodPost, path: "/v1/biomes", op: policy.OpUpload, body: bodyModule, summary: "Upload a biome", handle: (*Server).upload},
		{method: http.MethodGet, path: "/v1/biomes/{name}", op: policy.OpRead, summary: "Show a biome", handle: (*Server).getBiome},
		{method: http.MethodGet, path: "/v1/biomes/{name}/versions", op: policy.OpRead, query: paging, summary: "List a biome's uploads", handle: (*Server).listUploads},
		{method: http.MethodGet, path: "/v1/biomes/{name}/permissions", op: policy.OpRead, query: []string{"digest"}, summary: "Show what a version of a biome may do at most, and what changes with it", handle: (*Server).getPermissions},
		{method: http.MethodPost, path: "/v1/biomes/{name}/disable", op: policy.OpDisable, changes: true, summary: "Stop a biome from being invoked", handle: (*Server).disableBiome},
		{method: http.MethodPost, path: "/v1/biomes/{name}/enable", op: policy.OpEnable, changes: true, summary: "Let a disabled biome be invoked again", handle: (*Server).enableBiome},
		{method: http.MethodPost, path: "/v1/biomes/{name}/promote", op: policy.OpPromote, body: bodyJSON, waits: true, summary: "Ask for a version to be admitted", handle: (*Server).promoteBiome},
		{method: http.MethodPost, path: "/v1/biomes/{name}/rollback", op: policy.OpRollback, changes: true, summary: "Install the version that was installed before, under the install grant's ETag", handle: (*Server).rollbackBiome},
		{method: http.MethodPost, path: "/v1/biomes/{name}/archive", op: policy.OpArchive, changes: true, summary: "Take no more uploads and installs of a biome; what is installed goes on", handle: (*Server).archiveBiome},

		{method: http.MethodGet, path: "/v1/biomes/{name}/suggested-grants", op: policy.OpReadAudit, query: []string{"environment", "since"}, summary: "The smallest grants for what a biome did in trusted-dev", handle: (*Server).suggestGrants},

		{method: http.MethodGet, path: "/v1/installs", op: policy.OpRead, query: paging, summary: "List install grants", handle: (*Server).listInstalls},
		{method: http.MethodGet, path: "/v1/installs/{biome}", op: policy.OpRead, query: []string{"digest"}, summary: "Show the newest install grant of a biome, or that of a digest", handle: (*Server).getInstall},
		{method: http.MethodPut, path: "/v1/installs/{biome}", op: policy.OpInstall, body: bodyJSON, summary: "Admit one digest of a biome", handle: (*Server).putInstall},
		{method: http.MethodDelete, path: "/v1/installs/{biome}", op: policy.OpUninstall, query: []string{"digest"}, summary: "Revoke the install grants of a biome, or that of a digest", handle: (*Server).deleteInstall},

		{method: http.MethodGet, path: "/v1/capabilities", op: policy.OpRead, query: paging, summary: "List capabilities and how far each has come", handle: (*Server).listCapabilities},
		{method: http.MethodGet, path: "/v1/capabilities/{ref}", op: policy.OpRead, summary: "Show a capability and how far it has come", handle: (*Server).getCapability},
		{method: http.MethodPut, path: "/v1/capabilities/{ref}/lifecycle", op: policy.OpLifecycle, body: bodyJSON, summary: "Deprecate or retire a capability", handle: (*Server).putLifecycle},

		{method: http.MethodGet, path: "/v1/grants", op: policy.OpRead, query: append([]string{"subject", "capability"}, paging...), summary: "List grants and their revocations", handle: (*Server).listGrants},
		{method: http.MethodPost, path: "/v1/grants", op: policy.OpGrantCreate, body: bodyJSON, summary: "Give a grant", handle: (*Server).createGrant},
		{method: http.MethodDelete, path: "/v1/grants/{id}", op: policy.OpGrantRevoke, summary: "Revoke a grant with a new record", handle: (*Server).revokeGrant},
		{method: http.MethodGet, path: "/v1/environment-grants", op: policy.OpRead, query: paging, summary: "List environment grants", handle: (*Server).listEnvironmentGrants},
		{method: http.MethodPost, path: "/v1/environment-grants", op: policy.OpEnvGrant, body: bodyJSON, summary: "Let a principal open sessions", handle: (*Server).createEnvironmentGrant},
		{method: http.MethodGet, path: "/v1/environment-grants/{id}", op: policy.OpRead, summary: "Show an environment grant and its revocation", handle: (*Server).getEnvironmentGrant},
		{method: http.MethodDelete, path: "/v1/environment-grants/{id}", op: policy.OpEnvRevoke, summary: "Revoke an environment grant, and end the sessions it opened", handle: (*Server).revokeEnvironmentGrant},

		// A principal without the role may still open a session by an environment grant: policy decides.
		{method: http.MethodPost, path: "/v1/sessions", body: bodyJSON, summary: "Open a session; its token is shown once", handle: (*Server).openSession},
		{method: http.MethodGet, path: "/v1/sessions", op: policy.OpReadGuarded, query: paging, summary: "List sessions", handle: (*Server).listSessions},
		{method: http.MethodGet, path: "/v1/sessions/{id}", op: policy.OpReadGuarded, summary: "Show a session", handle: (*Server).getSession},
		{method: http.MethodDelete, path: "/v1/sessions/{id}", op: policy.OpSessionClose, summary: "Close a session", handle: (*Server).closeSession},

		{method: http.MethodPost, path: "/v1/sessions/{id}/declassify", op: policy.OpDeclassify, body: bodyJSON, waits: true, summary: "Ask, in a session's place, that one invocation with exactly this input may begin lower than its mark", handle: (*Server).declassify},

		{method: http.MethodPost, path: "/v1/tokens", op: policy.OpTokenIssue, body: bodyJSON, summary: "Issue a principal's token; it is shown once", handle: (*Server).issueToken},
		{method: http.MethodGet, path: "/v1/tokens", op: policy.OpReadGuarded, query: paging, summary: "List tokens", handle: (*Server).listTokens},
		{method: http.MethodDelete, path: "/v1/tokens/{id}", op: policy.OpTokenRevoke, empty: true, summary: "Revoke a token", handle: (*Server).revokeToken},

		{method: http.MethodGet, path: "/v1/secrets", op: policy.OpReadGuarded, query: paging, summary: "List secrets; values are never shown", handle: (*Server).listSecrets},
		{method: http.MethodGet, path: "/v1/secrets/{name}", op: policy.OpReadGuarded, summary: "Show a secret's uses and version", handle: (*Server).getSecret},
		{method: http.MethodPut, path: "/v1/secrets/{name}", op: policy.OpSecretPut, body: bodyJSON, summary: "Store a secret", handle: (*Server).putSecret},
		{method: http.MethodDelete, path: "/v1/secrets/{name}", op: policy.OpSecretDrop, empty: true, summary: "Remove a secret", handle: (*Server).deleteSecret},

		{method: http.MethodGet, path: "/v1/endpoints", op: policy.OpReadGuarded, query: paging, summary: "List endpoints", handle: (*Server).listEndpoints},
		{method: http.MethodGet, path: "/v1/endpoints/{name}", op: policy.OpReadGuarded, summary: "Show an endpoint", handle: (*Server).getEndpoint},
		{method: http.MethodPut, path: "/v1/endpoints/{name}", op: policy.OpEndpointPut, body: bodyJSON, summary: "Name an origin that biomes may be allowed to call", handle: (*Server).putEndpoint},
		{method: http.MethodDelete, path: "/v1/endpoints/{name}", op: policy.OpEndpointDrop, empty: true, summary: "Remove an endpoint", handle: (*Server).deleteEndpoint},

		{method: http.MethodGet, path: "/v1/approvals", op: policy.OpReadApprovals, query: append([]string{"state"}, paging...), summary: "List what waits, or waited, for a person's word", handle: (*Server).listApprovals},
		{method: http.MethodGet, path: "/v1/approvals/{id}", op: policy.OpReadApprovals, summary: "Show all that an approval is bound to, with the input", handle: (*Server).getApproval},
		{method: http.MethodPost, path: "/v1/approvals/{id}/approve", op: policy.OpApprovalApprove, body: bodyJSON, changes: true, summary: "Approve it; an invocation is run, once", handle: (*Server).approve},
		{method: http.MethodPost, path: "/v1/approvals/{id}/reject", op: policy.OpApprovalReject, body: bodyJSON, changes: true, summary: "Reject it for good", handle: (*Server).reject},
		{method: http.MethodGet, path: "/v1/approve-grants", op: policy.OpRead, query: paging, summary: "List grants to approve", handle: (*Server).listApproveGrants},
		{method: http.MethodPost, path: "/v1/approve-grants", op: policy.OpApproveGrant, body: bodyJSON, summary: "Let an approver decide about a capability", handle: (*Server).createApproveGrant},
		{method: http.MethodDelete, path: "/v1/approve-grants/{id}", op: policy.OpApproveRevoke, summary: "Revoke a grant to approve", handle: (*Server).revokeApproveGrant},

		{method: http.MethodGet, path: "/v1/audit", op: policy.OpReadAudit, query: append([]string{"kind", "invocation", "capability", "subject", "verdict", "parent", "root", "oldest"}, paging...), summary: "Read audit rows", handle: (*Server).listAudit},
		{method: http.MethodGet, path: "/v1/audit/head", op: policy.OpReadAuditHead, summary: "The signed head of the audit log", handle: (*Server).auditHead},
		{method: http.MethodGet, path: "/v1/audit/{id}", op: policy.OpReadAudit, summary: "Show one audit row", handle: (*Server).getAudit},
	}
}

// checkQuery refuses parameters the route does not take: what would be ignored is not accepted.
func (rt *route) checkQuery(r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return abi.Errorf(abi.CodeInvalidRequest, "the query is malformed")
	}
	for k, v := range q {
		if rt.open || (k != "org" && !slices.Contains(rt.query, k)) {
			return abi.Errorf(abi.CodeInvalidRequest, "unknown query parameter %s", abi.Quote(k))
		}
		if len(v) != 1 {
			return abi.Errorf(abi.CodeInvalidRequest, "query parameter %s is there more than once", abi.Quote(k))
		}
	}
	return nil
}

package admin

import (
	"net/http"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/contract"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/usage"
)

// speech is what one route reads and answers, for the document. A test holds every answer of all
// server tests to it, and every request that was taken.
type speech struct {
	id      string   // of the operation: what clients that are made from the document call it
	in      any      // a value of the type the body is decoded into
	without []string // members of it that may be absent: the path or the query says them
	out     any
	media   string // of the answer; "" is JSON's
	tagged  bool   // the answer has an ETag
	matches bool   // If-Match or If-None-Match is looked at
	again   bool   // 200 beside 201: what was there already
}

// The bodies that only the document and one handler know.
type (
	orgBody struct {
		ID string `json:"id"`
	}
	overrideBody struct {
		MaxData abi.Classification `json:"maxDataClassification"`
	}
	decisionBody struct {
		Reason string `json:"reason,omitempty"`
	}
)

var (
	orgMember   = []string{"org"}
	biomeMember = []string{"org", "biome"}
	nameMember  = []string{"org", "name"}
)

// spoken is by method and path, as the route table has them.
var spoken = map[string]speech{
	"GET /openapi.json": {id: "getDocument", out: contract.Object{"type": "object"}},

	"GET /v1/orgs":                              {id: "listOrgs", out: list[policy.Org]{}},
	"POST /v1/orgs":                             {id: "createOrg", in: orgBody{}, out: policy.Org{}},
	"GET /v1/orgs/{org}/overrides":              {id: "listOverrides", out: list[environment.Override]{}},
	"PUT /v1/orgs/{org}/overrides/{slug}":       {id: "putOverride", in: overrideBody{}, out: environment.Override{}, tagged: true, matches: true},
	"GET /v1/orgs/{org}/overrides/{slug}":       {id: "getOverride", out: environment.Override{}, tagged: true},
	"DELETE /v1/orgs/{org}/overrides/{slug}":    {id: "deleteOverride", matches: true},
	"GET /v1/orgs/{org}/environments":           {id: "listOwnEnvironments", out: list[environment.Environment]{}},
	"POST /v1/orgs/{org}/environments":          {id: "createOwnEnvironment", in: ownBody{}, out: environment.Environment{}, tagged: true},
	"GET /v1/orgs/{org}/environments/{slug}":    {id: "getOwnEnvironment", out: environment.Environment{}, tagged: true},
	"PUT /v1/orgs/{org}/environments/{slug}":    {id: "putOwnEnvironment", in: ownBody{}, out: environment.Environment{}, tagged: true, matches: true},
	"DELETE /v1/orgs/{org}/environments/{slug}": {id: "deleteOwnEnvironment", matches: true},
	"GET /v1/orgs/{org}/rates":                  {id: "getRates", out: policy.Rates{}, tagged: true},
	"PUT /v1/orgs/{org}/rates":                  {id: "putRates", in: policy.RatesRequest{}, without: orgMember, out: policy.Rates{}, tagged: true, matches: true},

	"GET /v1/environments":           {id: "listEnvironments", out: list[environment.Environment]{}},
	"POST /v1/environments":          {id: "createEnvironment", in: environmentBody{}, out: environment.Environment{}},
	"GET /v1/environments/{slug}":    {id: "getEnvironment", out: environment.Environment{}, tagged: true},
	"PUT /v1/environments/{slug}":    {id: "putEnvironment", in: environmentBody{}, out: environment.Environment{}, tagged: true, matches: true},
	"DELETE /v1/environments/{slug}": {id: "deleteEnvironment", out: environment.Environment{}},

	"GET /v1/spaces":      {id: "listSpaces", out: list[policy.SpaceStatus]{}},
	"GET /v1/spaces/{id}": {id: "getSpace", out: policy.SpaceStatus{}},
	"POST /v1/spaces":     {id: "createSpace", in: policy.SpaceRequest{}, without: orgMember, out: policy.SpaceStatus{}},

	"GET /v1/biomes":                         {id: "listBiomes", out: list[policy.Biome]{}},
	"POST /v1/biomes":                        {id: "uploadBiome", out: uploaded{}, tagged: true, again: true},
	"GET /v1/biomes/{name}":                  {id: "getBiome", out: policy.Biome{}, tagged: true},
	"GET /v1/biomes/{name}/versions":         {id: "listUploads", out: list[policy.Version]{}},
	"GET /v1/biomes/{name}/permissions":      {id: "getPermissions", out: policy.PermissionsReport{}},
	"POST /v1/biomes/{name}/disable":         {id: "disableBiome", out: policy.Biome{}, tagged: true, matches: true},
	"POST /v1/biomes/{name}/enable":          {id: "enableBiome", out: policy.Biome{}, tagged: true, matches: true},
	"POST /v1/biomes/{name}/promote":         {id: "promoteBiome", in: policy.InstallRequest{}, without: biomeMember, out: waits{}},
	"POST /v1/biomes/{name}/rollback":        {id: "rollbackBiome", out: grant.Install{}, tagged: true, matches: true},
	"POST /v1/biomes/{name}/archive":         {id: "archiveBiome", out: policy.Biome{}, tagged: true, matches: true},
	"GET /v1/biomes/{name}/suggested-grants": {id: "suggestGrants", out: usage.Suggested{}},

	"GET /v1/installs":            {id: "listInstalls", out: list[grant.Install]{}},
	"GET /v1/installs/{biome}":    {id: "getInstall", out: grant.Install{}, tagged: true},
	"PUT /v1/installs/{biome}":    {id: "putInstall", in: policy.InstallRequest{}, without: biomeMember, out: grant.Install{}, tagged: true, matches: true},
	"DELETE /v1/installs/{biome}": {id: "deleteInstall", out: grant.Revocation{}, matches: true},

	"GET /v1/capabilities":                 {id: "listCapabilities", out: list[policy.Capability]{}},
	"GET /v1/capabilities/{ref}":           {id: "getCapability", out: policy.Capability{}, tagged: true},
	"PUT /v1/capabilities/{ref}/lifecycle": {id: "putLifecycle", in: policy.LifecycleRequest{}, without: []string{"org", "capability"}, out: policy.Capability{}, tagged: true, matches: true},

	"GET /v1/grants":                     {id: "listGrants", out: list[policy.GrantStatus]{}},
	"POST /v1/grants":                    {id: "createGrant", in: policy.GrantRequest{}, without: orgMember, out: grant.Grant{}},
	"DELETE /v1/grants/{id}":             {id: "revokeGrant", out: grant.Revocation{}},
	"GET /v1/environment-grants":         {id: "listEnvironmentGrants", out: list[grant.EnvironmentGrant]{}},
	"POST /v1/environment-grants":        {id: "createEnvironmentGrant", in: policy.EnvironmentGrantRequest{}, without: orgMember, out: grant.EnvironmentGrant{}},
	"GET /v1/environment-grants/{id}":    {id: "getEnvironmentGrant", out: policy.EnvironmentGrantStatus{}},
	"DELETE /v1/environment-grants/{id}": {id: "revokeEnvironmentGrant", out: grant.Revocation{}},

	"POST /v1/sessions":                 {id: "openSession", in: policy.SessionRequest{}, without: orgMember, out: tokenOnce[session.Session]{}},
	"GET /v1/sessions":                  {id: "listSessions", out: list[session.Session]{}},
	"GET /v1/sessions/{id}":             {id: "getSession", out: session.Session{}},
	"DELETE /v1/sessions/{id}":          {id: "closeSession", out: session.Session{}},
	"POST /v1/sessions/{id}/declassify": {id: "declassifyForSession", in: invoke.DeclassifyRequest{}, out: invoke.Declassifying{}},

	"POST /v1/tokens":        {id: "issueToken", in: policy.TokenRequest{}, without: orgMember, out: tokenOnce[policy.TokenStatus]{}},
	"GET /v1/tokens":         {id: "listTokens", out: list[policy.TokenStatus]{}},
	"DELETE /v1/tokens/{id}": {id: "revokeToken"},

	"GET /v1/secrets":           {id: "listSecrets", out: list[grant.SecretInfo]{}},
	"GET /v1/secrets/{name}":    {id: "getSecret", out: grant.SecretInfo{}, tagged: true},
	"PUT /v1/secrets/{name}":    {id: "putSecret", in: secretBody{}, out: grant.SecretInfo{}, tagged: true, matches: true},
	"DELETE /v1/secrets/{name}": {id: "deleteSecret", matches: true},

	"GET /v1/endpoints":           {id: "listEndpoints", out: list[grant.Endpoint]{}},
	"GET /v1/endpoints/{name}":    {id: "getEndpoint", out: grant.Endpoint{}, tagged: true},
	"PUT /v1/endpoints/{name}":    {id: "putEndpoint", in: policy.EndpointRequest{}, without: nameMember, out: grant.Endpoint{}, tagged: true, matches: true},
	"DELETE /v1/endpoints/{name}": {id: "deleteEndpoint", matches: true},

	"GET /v1/approvals":               {id: "listApprovals", out: list[approvalShown]{}},
	"GET /v1/approvals/{id}":          {id: "getApproval", out: approvalShown{}},
	"POST /v1/approvals/{id}/approve": {id: "approveRequest", in: decisionBody{}, out: approvalShown{}},
	"POST /v1/approvals/{id}/reject":  {id: "rejectRequest", in: decisionBody{}, out: approvalShown{}},
	"GET /v1/approve-grants":          {id: "listApproveGrants", out: list[grant.ApproveGrant]{}},
	"POST /v1/approve-grants":         {id: "createApproveGrant", in: policy.ApproveGrantRequest{}, without: orgMember, out: grant.ApproveGrant{}},
	"DELETE /v1/approve-grants/{id}":  {id: "revokeApproveGrant", out: grant.Revocation{}},

	"GET /v1/audit":      {id: "listAudit", out: list[audit.Row]{}},
	"GET /v1/audit/head": {id: "getAuditHead", out: contract.Object{"type": "string"}, media: "text/plain"},
	"GET /v1/audit/{id}": {id: "getAudit", out: audit.Row{}},
}

// Contract is the OpenAPI document of the control plane, made from the route table, so that it has
// every route and no other.
func Contract() *contract.Document {
	d := &contract.Document{
		Title: "Ecotone control plane", Server: "http://127.0.0.1:8181",
		Description: "Administration of environments, spaces, biomes, grants, sessions, endpoints, secrets and the audit log. " +
			"Listings come in pages: `next` of one is `after` of the next. What can change has an ETag and wants it back in If-Match.",
		Token: "A principal's token, eco_p_…",
		Headers: map[string]contract.Object{
			"ETag":     {"description": "The version that If-Match names", "schema": contract.Object{"type": "string"}},
			"Location": {"description": "Where it is", "schema": contract.Object{"type": "string"}},
		},
		Paths: map[string]contract.Object{"ref": contract.Text("<domain>:<resource>.<verb>@<major>")},
		Known: contract.Vocabulary(),
	}
	for i := range routeTable {
		d.Operations = append(d.Operations, routeTable[i].operation())
	}
	return d
}

func (rt *route) operation() contract.Operation {
	said := spoken[rt.method+" "+rt.path]
	op := contract.Operation{Method: rt.method, Path: rt.path, ID: said.id, Summary: rt.summary, Open: rt.open}
	if !rt.open {
		for _, q := range append([]string{"org"}, rt.query...) {
			if !strings.Contains(rt.path, "{"+q+"}") {
				op.Parameters = append(op.Parameters, queryParameter(q))
			}
		}
	}
	if said.matches {
		op.Parameters = append(op.Parameters,
			contract.Parameter{In: "header", Name: "If-Match", Description: "The ETag of what is changed"},
			contract.Parameter{In: "header", Name: "If-None-Match", Description: "* for what is not there yet"})
	}
	switch rt.body {
	case bodyJSON:
		op.Bodies = []contract.Body{{Media: "application/json", Of: said.in, Without: said.without}}
	case bodyModule:
		op.Bodies = []contract.Body{{Media: "application/wasm"}, {Media: "multipart/form-data", Of: contract.Object{
			"type": "object", "required": []string{"module", "manifest"}, "additionalProperties": false,
			"properties": contract.Object{
				"module":   contract.Object{"contentMediaType": "application/wasm"},
				"manifest": contract.Object{"contentMediaType": "application/json"},
			},
		}}}
	}
	done := contract.Answer{Status: rt.success(), Meaning: "Done", Media: said.media, Of: said.out}
	if said.tagged {
		done.Headers = append(done.Headers, "ETag")
	}
	if done.Status == http.StatusCreated || done.Status == http.StatusAccepted {
		done.Headers = append(done.Headers, "Location")
	}
	op.Answers = []contract.Answer{done}
	if said.again {
		done.Status, done.Meaning, done.Headers = http.StatusOK, "It was there already", []string{"ETag"}
		op.Answers = append(op.Answers, done)
	}
	return op
}

func queryParameter(name string) contract.Parameter {
	p := contract.Parameter{In: "query", Name: name}
	switch name {
	case "limit":
		p.Schema = contract.Object{"type": "integer", "minimum": 1, "maximum": maxPage, "default": defaultPage}
	case "after":
		p.Description = "The `next` of the page before"
	case "org":
		p.Description = "The organisation; without it the token's own"
	case "oldest", "builtin":
		p.Schema = contract.Object{"type": "boolean"}
	}
	return p
}

func (rt *route) success() int {
	if rt.empty {
		return http.StatusNoContent
	}
	if rt.waits {
		return http.StatusAccepted
	}
	if rt.method == http.MethodPost && !rt.changes {
		return http.StatusCreated
	}
	return http.StatusOK
}

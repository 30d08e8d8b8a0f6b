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
	"GET /openapi.json": {out: contract.Object{"type": "object"}},

	"GET /v1/orgs":                              {out: list[policy.Org]{}},
	"POST /v1/orgs":                             {in: orgBody{}, out: policy.Org{}},
	"GET /v1/orgs/{org}/overrides":              {out: list[environment.Override]{}},
	"PUT /v1/orgs/{org}/overrides/{slug}":       {in: overrideBody{}, out: environment.Override{}, tagged: true, matches: true},
	"GET /v1/orgs/{org}/overrides/{slug}":       {out: environment.Override{}, tagged: true},
	"DELETE /v1/orgs/{org}/overrides/{slug}":    {matches: true},
	"GET /v1/orgs/{org}/environments":           {out: list[environment.Environment]{}},
	"POST /v1/orgs/{org}/environments":          {in: ownBody{}, out: environment.Environment{}, tagged: true},
	"GET /v1/orgs/{org}/environments/{slug}":    {out: environment.Environment{}, tagged: true},
	"PUT /v1/orgs/{org}/environments/{slug}":    {in: ownBody{}, out: environment.Environment{}, tagged: true, matches: true},
	"DELETE /v1/orgs/{org}/environments/{slug}": {matches: true},
	"GET /v1/orgs/{org}/rates":                  {out: policy.Rates{}, tagged: true},
	"PUT /v1/orgs/{org}/rates":                  {in: policy.RatesRequest{}, without: orgMember, out: policy.Rates{}, tagged: true, matches: true},

	"GET /v1/environments":           {out: list[environment.Environment]{}},
	"POST /v1/environments":          {in: environmentBody{}, out: environment.Environment{}},
	"GET /v1/environments/{slug}":    {out: environment.Environment{}, tagged: true},
	"PUT /v1/environments/{slug}":    {in: environmentBody{}, out: environment.Environment{}, tagged: true, matches: true},
	"DELETE /v1/environments/{slug}": {out: environment.Environment{}},

	"GET /v1/spaces":      {out: list[policy.SpaceStatus]{}},
	"GET /v1/spaces/{id}": {out: policy.SpaceStatus{}},
	"POST /v1/spaces":     {in: policy.SpaceRequest{}, without: orgMember, out: policy.SpaceStatus{}},

	"GET /v1/biomes":                         {out: list[policy.Biome]{}},
	"POST /v1/biomes":                        {out: uploaded{}, tagged: true, again: true},
	"GET /v1/biomes/{name}":                  {out: policy.Biome{}, tagged: true},
	"GET /v1/biomes/{name}/versions":         {out: list[policy.Version]{}},
	"GET /v1/biomes/{name}/permissions":      {out: policy.PermissionsReport{}},
	"POST /v1/biomes/{name}/disable":         {out: policy.Biome{}, tagged: true, matches: true},
	"POST /v1/biomes/{name}/enable":          {out: policy.Biome{}, tagged: true, matches: true},
	"POST /v1/biomes/{name}/promote":         {in: policy.InstallRequest{}, without: biomeMember, out: waits{}},
	"POST /v1/biomes/{name}/rollback":        {out: grant.Install{}, tagged: true, matches: true},
	"POST /v1/biomes/{name}/archive":         {out: policy.Biome{}, tagged: true, matches: true},
	"GET /v1/biomes/{name}/suggested-grants": {out: usage.Suggested{}},

	"GET /v1/installs":            {out: list[grant.Install]{}},
	"GET /v1/installs/{biome}":    {out: grant.Install{}, tagged: true},
	"PUT /v1/installs/{biome}":    {in: policy.InstallRequest{}, without: biomeMember, out: grant.Install{}, tagged: true, matches: true},
	"DELETE /v1/installs/{biome}": {out: grant.Revocation{}, matches: true},

	"GET /v1/capabilities":                 {out: list[policy.Capability]{}},
	"GET /v1/capabilities/{ref}":           {out: policy.Capability{}, tagged: true},
	"PUT /v1/capabilities/{ref}/lifecycle": {in: policy.LifecycleRequest{}, without: []string{"org", "capability"}, out: policy.Capability{}, tagged: true, matches: true},

	"GET /v1/grants":                     {out: list[policy.GrantStatus]{}},
	"POST /v1/grants":                    {in: policy.GrantRequest{}, without: orgMember, out: grant.Grant{}},
	"DELETE /v1/grants/{id}":             {out: grant.Revocation{}},
	"GET /v1/environment-grants":         {out: list[grant.EnvironmentGrant]{}},
	"POST /v1/environment-grants":        {in: policy.EnvironmentGrantRequest{}, without: orgMember, out: grant.EnvironmentGrant{}},
	"GET /v1/environment-grants/{id}":    {out: policy.EnvironmentGrantStatus{}},
	"DELETE /v1/environment-grants/{id}": {out: grant.Revocation{}},

	"POST /v1/sessions":                 {in: policy.SessionRequest{}, without: orgMember, out: tokenOnce[session.Session]{}},
	"GET /v1/sessions":                  {out: list[session.Session]{}},
	"GET /v1/sessions/{id}":             {out: session.Session{}},
	"DELETE /v1/sessions/{id}":          {out: session.Session{}},
	"POST /v1/sessions/{id}/declassify": {in: invoke.DeclassifyRequest{}, out: invoke.Declassifying{}},

	"POST /v1/tokens":        {in: policy.TokenRequest{}, without: orgMember, out: tokenOnce[policy.TokenStatus]{}},
	"GET /v1/tokens":         {out: list[policy.TokenStatus]{}},
	"DELETE /v1/tokens/{id}": {},

	"GET /v1/secrets":           {out: list[grant.SecretInfo]{}},
	"GET /v1/secrets/{name}":    {out: grant.SecretInfo{}, tagged: true},
	"PUT /v1/secrets/{name}":    {in: secretBody{}, out: grant.SecretInfo{}, tagged: true, matches: true},
	"DELETE /v1/secrets/{name}": {matches: true},

	"GET /v1/endpoints":           {out: list[grant.Endpoint]{}},
	"GET /v1/endpoints/{name}":    {out: grant.Endpoint{}, tagged: true},
	"PUT /v1/endpoints/{name}":    {in: policy.EndpointRequest{}, without: nameMember, out: grant.Endpoint{}, tagged: true, matches: true},
	"DELETE /v1/endpoints/{name}": {matches: true},

	"GET /v1/approvals":               {out: list[approvalShown]{}},
	"GET /v1/approvals/{id}":          {out: approvalShown{}},
	"POST /v1/approvals/{id}/approve": {in: decisionBody{}, out: approvalShown{}},
	"POST /v1/approvals/{id}/reject":  {in: decisionBody{}, out: approvalShown{}},
	"GET /v1/approve-grants":          {out: list[grant.ApproveGrant]{}},
	"POST /v1/approve-grants":         {in: policy.ApproveGrantRequest{}, without: orgMember, out: grant.ApproveGrant{}},
	"DELETE /v1/approve-grants/{id}":  {out: grant.Revocation{}},

	"GET /v1/audit":      {out: list[audit.Row]{}},
	"GET /v1/audit/head": {out: contract.Object{"type": "string"}, media: "text/plain"},
	"GET /v1/audit/{id}": {out: audit.Row{}},
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
	op := contract.Operation{Method: rt.method, Path: rt.path, ID: rt.id(), Summary: rt.summary, Open: rt.open}
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
			contract.Parameter{In: "header", Name: "If-None-Match", Description: "* for what is not there yet", Schema: contract.Object{"type": "string", "const": "*"}})
	}
	switch rt.body {
	case bodyJSON:
		op.Bodies = []contract.Body{{Media: "application/json", Of: said.in, Without: said.without}}
	case bodyModule:
		op.Bodies = []contract.Body{{Media: "application/wasm"}, {Media: "multipart/form-data", Of: contract.Object{
			"type": "object", "required": []string{"module"}, "additionalProperties": false,
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

// id is a stable name: the method and the plain parts of the path.
func (rt *route) id() string {
	id := strings.ToLower(rt.method)
	for _, part := range strings.FieldsFunc(rt.path, func(r rune) bool { return r == '/' || r == '{' || r == '}' || r == '.' || r == '-' }) {
		if part != "v1" {
			id += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return id
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

package problem

import "github.com/ecotone-dev/ecotone/abi"

// Suggestion is something that, done by someone who may, brings the same call further: what it is about
// is in members of its own, named as the requests that follow it name them, so that a program can do it.
// What a grant or an install grant has to name comes beside what the one names that is there.
// Suggestions are made of policy and of what the caller itself sent, never of data.
type Suggestion struct {
	Kind        string   `json:"kind"`
	Subject     string   `json:"subject,omitempty"`     // who would hold the grant
	Capability  string   `json:"capability,omitempty"`  // that is invoked, or that is to be invoked instead
	Environment string   `json:"environment,omitempty"` // of the grant; that the install grant should admit; to open a session in
	Space       string   `json:"space,omitempty"`       // that the grant has to name
	Grant       string   `json:"grant,omitempty"`       // id of the grant that this one takes the place of
	Biome       string   `json:"biome,omitempty"`       // whose install grant, or which is disabled
	Call        string   `json:"call,omitempty"`        // capability that the install grant should let the biome call
	Endpoint    string   `json:"endpoint,omitempty"`    // that the install grant should keep
	Secret      string   `json:"secret,omitempty"`      // likewise
	URL         string   `json:"url,omitempty"`         // that no endpoint admits, or that the grant has to name
	Globs       []string `json:"globs,omitempty"`       // that the grant has to name
	// Classification is the most that the data may be, or the clearance that a session or a ceiling needs.
	Classification abi.Classification `json:"classification,omitzero"`
	Seconds        int64              `json:"seconds,omitempty"` // to wait
	Detail         string             `json:"detail,omitempty"`
}

// The closed set of kinds, with the request that follows each. Whoever may make it is another question.
const (
	RequestGrant    = "request-grant"           // POST /v1/grants; where a grant is named, replacing it
	RequestInstall  = "request-install"         // PUT /v1/installs/{biome}, with what is named beside what is there
	RequestEnable   = "request-enable"          // POST /v1/biomes/{biome}/enable
	RequestEndpoint = "request-endpoint"        // PUT /v1/endpoints/{name} that admits the URL, and the install grant keeps it
	RequestCeiling  = "request-ceiling"         // the organisation's override of the environment, up to the classification
	SwitchEnv       = "switch-environment"      // POST /v1/sessions in the environment
	OpenSession     = "open-session"            // another session, with this clearance where one is named
	UseSuccessor    = "use-successor"           // the same call of the capability
	UseAnother      = "use-another-capability"  // the same call of the capability; where none is named, nothing makes it work
	UseLess         = "use-less-sensitive-data" // Ecotone-Classification at most the classification
	CorrectInput    = "correct-input"           // the schema is the capability's own
	Wait            = "wait"                    // the same call after so many seconds
	AwaitApproval   = "await-approval"          // POST /v1/approvals/{id}/approve by somebody else
)

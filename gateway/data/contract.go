package data

import (
	"net/http"
	"strings"

	"github.com/ecotone-dev/ecotone/gateway/contract"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
)

// listing is the answer to /v1/capabilities.
type listing struct {
	Items []invoke.Capability `json:"items"`
}

// speech is what one route reads and answers, for the document.
type speech struct {
	id, summary, argument string
	parameters            []contract.Parameter
	answers               []contract.Answer
}

var (
	declared    = contract.Parameter{In: "header", Name: headerClassification, Description: "How sensitive the input is at least; the session's mark and the space's floor count all the same"}
	deadline    = contract.Parameter{In: "header", Name: headerDeadline, Description: "Milliseconds, at most the environment's limit", Schema: contract.Object{"type": "integer", "minimum": 1}}
	traced      = contract.Parameter{In: "header", Name: headerTrace, Description: "W3C Trace Context, version 00; the trace id is recorded"}
	ranHeaders  = []string{"Ecotone-Invocation", "Ecotone-Classification", "Ecotone-Fuel", "Ecotone-Replaced-By"}
	invocations = []contract.Answer{{Status: http.StatusOK, Meaning: "What is recorded of it", Of: invoke.Shown{}}}
)

// spoken is by method and pattern, as the route table has them.
var spoken = map[string]speech{
	"POST " + invokePattern: {
		id: "invoke", summary: "Invoke a capability; the body is its input", argument: "ref",
		parameters: []contract.Parameter{declared, deadline, traced, {In: "header", Name: headerDeclassified, Description: "The approval of a declassification of exactly this input"}},
		answers: []contract.Answer{
			{Status: http.StatusOK, Meaning: "The capability's output", Any: true, Headers: ranHeaders},
			{Status: http.StatusAccepted, Meaning: "A person has to approve it first; Location says where to look", Of: invoke.Waiting{}, Headers: []string{"Ecotone-Invocation", "Location"}},
		},
	},
	"POST /v1/explain/{}": {
		id: "explain", summary: "Say what every check would come to, and run nothing", argument: "ref",
		parameters: []contract.Parameter{declared, deadline, traced},
		answers:    []contract.Answer{{Status: http.StatusOK, Meaning: "Every check's verdict", Of: invoke.Explanation{}}},
	},
	"POST " + declassifyPattern: {
		id: "declassify", summary: "Ask that exactly this input may be sent once at a lower classification", argument: "ref",
		parameters: []contract.Parameter{declared, traced, {In: "header", Name: headerDeclassifyTo, Description: "The classification asked for"}, {In: "header", Name: headerDeclassifySink, Description: "Where the bytes may then go"}},
		answers:    []contract.Answer{{Status: http.StatusAccepted, Meaning: "A person has to approve it", Of: invoke.Declassifying{}}},
	},
	"POST /v1/invocations/{}:cancel": {
		id: "cancelInvocation", summary: "Ask a running invocation of this session to end", argument: "id",
		answers: []contract.Answer{{Status: http.StatusAccepted, Meaning: "How far that is", Of: invoke.Cancellation{}, Headers: []string{"Ecotone-Invocation"}}},
	},
	"GET /v1/invocations/{}": {id: "getInvocation", summary: "Show an invocation of this session, and what came of waiting", argument: "id", answers: invocations},
	"GET /v1/capabilities": {
		id: "listCapabilities", summary: "List what this session may invoke now, with schemas",
		answers: []contract.Answer{{Status: http.StatusOK, Meaning: "In order of refs", Of: listing{}}},
	},
	"GET " + documentPattern: {id: "getDocument", summary: "This document", answers: []contract.Answer{{Status: http.StatusOK, Meaning: "This document", Of: contract.Object{"type": "object"}}}},
}

// Contract is the OpenAPI document of the data plane, made from the route table, so that it has every
// route and no other.
func Contract() *contract.Document {
	text := func(description, kind string) contract.Object {
		return contract.Object{"description": description, "schema": contract.Object{"type": kind}}
	}
	d := &contract.Document{
		Title: "Ecotone data plane", Server: "http://127.0.0.1:8180",
		Description: "Invocation of capabilities. The session behind the token says who calls, in which space and environment: nothing in a request does.",
		Token:       "A session's token, eco_s_…",
		Headers: map[string]contract.Object{
			"Ecotone-Invocation":     text("The invocation's id", "string"),
			"Ecotone-Classification": text("How sensitive the answer is", "string"),
			"Ecotone-Fuel":           text("What the guest used", "integer"),
			"Ecotone-Replaced-By":    text("What to invoke instead of a deprecated capability", "string"),
			"Location":               text("Where to look", "string"),
		},
		Paths: map[string]contract.Object{"ref": contract.Text("<domain>:<resource>.<verb>@<major>"), "id": contract.Text("An invocation's id")},
		Known: contract.Vocabulary(),
	}
	for i := range routes {
		d.Operations = append(d.Operations, routes[i].operation())
	}
	return d
}

func (r *route) operation() contract.Operation {
	said := spoken[r.method+" "+r.pattern]
	op := contract.Operation{
		Method: r.method, Path: strings.Replace(r.pattern, "{}", "{"+said.argument+"}", 1), ID: said.id, Summary: said.summary,
		Open: r.open, Parameters: said.parameters, Answers: said.answers,
	}
	if r.body {
		op.Bodies = []contract.Body{{Media: "application/json"}}
	}
	return op
}

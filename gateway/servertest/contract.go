package servertest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ecotone-dev/ecotone/gateway/admin"
	"github.com/ecotone-dev/ecotone/gateway/contract"
	"github.com/ecotone-dev/ecotone/gateway/data"
)

// agreed is one listener's contract as tests hold its answers to it. It is safe for concurrent use.
type agreed struct {
	operations []agreedOperation

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

type agreedOperation struct {
	method  string
	path    *regexp.Regexp
	pointer string // of the operation in the document
	spec    agreedSpec
}

type agreedSpec struct {
	RequestBody *struct {
		Content map[string]json.RawMessage `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Headers map[string]json.RawMessage `json:"headers"`
		Content map[string]json.RawMessage `json:"content"`
	} `json:"responses"`
}

var (
	controlContract = sync.OnceValue(func() *agreed { return agree(admin.Contract()) })
	dataContract    = sync.OnceValue(func() *agreed { return agree(data.Contract()) })
)

const contractURL = "urn:ecotone:contract"

// parameter is a path parameter in a document's path.
var parameter = regexp.MustCompile(`\\\{[a-z]+\\\}`)

func agree(d *contract.Document) *agreed {
	raw := d.Strict()
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	a := &agreed{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	a.compiler.AssertFormat()
	if err := a.compiler.AddResource(contractURL, whole); err != nil {
		panic(err)
	}
	var doc struct {
		Paths map[string]map[string]agreedSpec `json:"paths"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		panic(err)
	}
	for path, item := range doc.Paths {
		for method, spec := range item {
			a.operations = append(a.operations, agreedOperation{
				strings.ToUpper(method), regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+?`) + "$"),
				"/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method, spec,
			})
		}
	}
	return a
}

// schema compiles what is at a pointer of the document, once.
func (a *agreed) schema(pointer string) *jsonschema.Schema {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.compiled[pointer]; s != nil {
		return s
	}
	s, err := a.compiler.Compile(contractURL + "#" + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(pointer, "%", "%25"), "{", "%7B"), "}", "%7D"))
	if err != nil {
		panic(err)
	}
	a.compiled[pointer] = s
	return s
}

func (a *agreed) find(method, path string) *agreedOperation {
	var found *agreedOperation
	for i := range a.operations {
		o := &a.operations[i]
		// The plain path is meant where a pattern matches too, as /v1/audit/head.
		if o.method == method && o.path.MatchString(path) && (found == nil || len(o.path.String()) < len(found.path.String())) {
			found = o
		}
	}
	return found
}

// checkContract holds every answer of every test to the documents that the listeners serve: its status,
// its headers and its body; and every JSON body that was taken. What the document does not say is a fault
// of the document or of the server.
func (g *Gateway) checkContract(req *http.Request, sent []byte, r Response) {
	g.T.Helper()
	var a *agreed
	switch base := "http://" + req.URL.Host; base {
	case g.Admin:
		a = controlContract()
	case g.Invoke:
		a = dataContract()
	default:
		return
	}
	request := req.Method + " " + req.URL.Path
	if r.Status >= 400 {
		if r.Header.Get("Content-Type") == "application/problem+json" {
			a.hold(g, request, "/components/schemas/Problem", r.Body)
		}
		return
	}
	o := a.find(req.Method, req.URL.EscapedPath())
	if o == nil {
		g.T.Errorf("%s: %d, and no document knows of it", request, r.Status)
		return
	}
	status := strconv.Itoa(r.Status)
	said, there := o.spec.Responses[status]
	if !there {
		g.T.Errorf("%s: the document does not know a %s", request, status)
		return
	}
	for name := range r.Header {
		if _, documented := said.Headers[name]; !documented && (name == "Etag" && said.Headers["ETag"] == nil || name == "Location" || strings.HasPrefix(name, "Ecotone-")) {
			g.T.Errorf("%s: the document does not know that a %s has %s", request, status, name)
		}
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch _, documented := said.Content[media]; {
	case len(r.Body) == 0 && len(said.Content) == 0:
	case !documented:
		g.T.Errorf("%s: the document does not know that a %s is %q", request, status, media)
	case media == "application/json":
		a.hold(g, request, o.pointer+"/responses/"+status+"/content/application~1json/schema", r.Body)
	}
	// The data plane takes any JSON as input, and explains what is none.
	if a == controlContract() && o.spec.RequestBody != nil && req.Header.Get("Content-Type") == "application/json" {
		a.hold(g, request+": the request", o.pointer+"/requestBody/content/application~1json/schema", sent)
	}
}

func (a *agreed) hold(g *Gateway, what, pointer string, body []byte) {
	g.T.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		g.T.Errorf("%s: %v: %s", what, err, body)
		return
	}
	if err := a.schema(pointer).Validate(v); err != nil {
		g.T.Errorf("%s is not what the document says: %v\n%s", what, err, body)
	}
}

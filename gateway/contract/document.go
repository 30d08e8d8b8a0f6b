package contract

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// Version is that of the API, which is in its paths too.
const Version = "1"

// Parameter is one in the query or the head.
type Parameter struct {
	In          string // query or header
	Name        string
	Description string
	Schema      Object // nil: a string
}

// Body is what an operation reads in one media type. Of is a value of the type it decodes into,
// nil for any JSON value, or a schema.
type Body struct {
	Media   string
	Of      any
	Without []string // members that may be absent whatever the type's tags say
}

// Answer is one success.
type Answer struct {
	Status  int
	Meaning string
	Media   string   // "" is application/json
	Of      any      // as of a body; nil with no media: there is no body
	Any     bool     // any JSON value
	Headers []string // of [Document.Headers]
}

// Operation is one route.
type Operation struct {
	Method, Path string // path parameters in braces
	ID, Summary  string
	Open         bool // needs no token
	Parameters   []Parameter
	Bodies       []Body
	Answers      []Answer
}

// Document is one listener's API.
type Document struct {
	Title, Description, Server string
	Token                      string            // what the bearer token is
	Headers                    map[string]Object // of answers, by name: descriptions
	Paths                      map[string]Object // of path parameters, by name: schemas; others are strings
	Known                      Known
	Operations                 []Operation
}

// Encode renders the document: the same bytes for the same table. It panics when a type cannot be
// described, which a test of the table finds.
func (d *Document) Encode() []byte {
	raw, err := json.MarshalIndent(d.build(false), "", " ")
	if err != nil {
		panic(err)
	}
	return append(raw, '\n')
}

// Strict renders it for tests: answers have no other members than the described ones.
func (d *Document) Strict() []byte {
	raw, err := json.Marshal(d.build(true))
	if err != nil {
		panic(err)
	}
	return raw
}

func (d *Document) build(strict bool) Object {
	s := newSchemas(d.Known, strict)
	s.of(reflect.TypeFor[problem.Document](), false)
	s.made["Problem"], s.types["Problem"] = s.made["Document"], reflect.TypeFor[problem.Document]()
	delete(s.made, "Document")
	delete(s.types, "Document")
	paths, headers := Object{}, Object{}
	for name, described := range d.Headers {
		headers[name] = described
	}
	for i := range d.Operations {
		o := &d.Operations[i]
		item, _ := paths[o.Path].(Object)
		if item == nil {
			item = Object{}
			paths[o.Path] = item
		}
		item[strings.ToLower(o.Method)] = d.operation(s, o)
	}
	return Object{
		"openapi": "3.1.0",
		"info": Object{
			"title": d.Title, "version": Version, "description": d.Description,
			"license": Object{"name": "Apache License 2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []Object{{"url": d.Server}},
		"security": []Object{{"token": []string{}}},
		"paths":    paths,
		"components": Object{
			"securitySchemes": Object{"token": Object{"type": "http", "scheme": "bearer", "description": d.Token}},
			"schemas":         s.made,
			"headers":         headers,
			"responses": Object{"Problem": Object{
				"description": "Refused or failed. `code` is one of the catalogue, and says which status",
				"headers":     Object{"Retry-After": Object{"description": "Seconds, where it is worth trying again", "schema": Object{"type": "integer", "minimum": 1}}},
				"content":     Object{problem.ContentType: Object{"schema": Object{"$ref": "#/components/schemas/Problem"}}},
			}},
		},
	}
}

func (d *Document) operation(s *schemas, o *Operation) Object {
	out := Object{"operationId": o.ID, "summary": o.Summary}
	var parameters []Object
	for _, part := range strings.FieldsFunc(o.Path, func(r rune) bool { return r == '/' || r == ':' }) {
		if name, is := strings.CutPrefix(part, "{"); is {
			name = strings.TrimSuffix(name, "}")
			schema := d.Paths[name]
			if schema == nil {
				schema = Object{"type": "string"}
			}
			parameters = append(parameters, Object{"name": name, "in": "path", "required": true, "schema": schema})
		}
	}
	for _, p := range o.Parameters {
		schema := p.Schema
		if schema == nil {
			schema = Object{"type": "string"}
		}
		one := Object{"name": p.Name, "in": p.In, "schema": schema}
		if p.Description != "" {
			one["description"] = p.Description
		}
		parameters = append(parameters, one)
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if o.Open {
		out["security"] = []Object{}
	}
	if len(o.Bodies) > 0 {
		content := Object{}
		for _, b := range o.Bodies {
			content[b.Media] = Object{"schema": b.schema(s)}
		}
		out["requestBody"] = Object{"required": true, "content": content}
	}
	refused := Object{"$ref": "#/components/responses/Problem"}
	responses := Object{"4XX": refused, "default": refused}
	for _, a := range o.Answers {
		responses[strconv.Itoa(a.Status)] = d.answer(s, &a)
	}
	out["responses"] = responses
	return out
}

func (b *Body) schema(s *schemas) Object {
	switch of := b.Of.(type) {
	case nil:
		return Object{} // any JSON value; or bytes, which have no schema in OpenAPI 3.1
	case Object:
		return of
	default:
		return s.of(reflect.TypeOf(of), true, b.Without...)
	}
}

func (d *Document) answer(s *schemas, a *Answer) Object {
	out := Object{"description": a.Meaning}
	if len(a.Headers) > 0 {
		headers := Object{}
		for _, h := range a.Headers {
			headers[h] = Object{"$ref": "#/components/headers/" + h}
		}
		out["headers"] = headers
	}
	media, schema := a.Media, Object{}
	switch of := a.Of.(type) {
	case nil:
		if !a.Any && media == "" {
			return out
		}
	case Object:
		schema = of
	default:
		schema = s.of(reflect.TypeOf(of), false)
	}
	if media == "" {
		media = "application/json"
	}
	out["content"] = Object{media: Object{"schema": schema}}
	return out
}

package admin

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/version"
)

func (s *Server) getDocument(*call) (*reply, error) {
	return &reply{status: http.StatusOK, body: rawBody{"application/json", s.doc}}, nil
}

type object = map[string]any

// document is the OpenAPI 3.1 description of the control plane, made from the route table, so
// that it has every route and no other.
func (s *Server) document() object {
	paths := object{}
	for _, rt := range s.routes() {
		item, _ := paths[rt.path].(object)
		if item == nil {
			item = object{}
			paths[rt.path] = item
		}
		item[strings.ToLower(rt.method)] = rt.operation()
	}
	codes := make([]string, 0, len(abi.Codes()))
	for _, c := range abi.Codes() {
		codes = append(codes, string(c.Code))
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Ecotone control plane", "version": version.Version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Administration of environments, spaces, biomes, grants, sessions, endpoints, secrets and the audit log.",
		},
		"servers":  []object{{"url": "http://127.0.0.1:8181"}},
		"security": []object{{"token": []string{}}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "A principal's token, eco_p_…"}},
			"schemas": object{"Problem": object{
				"type": "object", "required": []string{"type", "title", "status", "code", "kind", "retryable"},
				"properties": object{
					"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
					"detail": object{"type": "string"}, "code": object{"type": "string", "enum": codes},
					"kind": object{"type": "string", "enum": abi.Kinds()}, "retryable": object{"type": "boolean"},
					"hint": object{"type": "string"}, "pointer": object{"type": "string"}, "auditId": object{"type": "string"},
				},
			}},
			"responses": object{"Problem": object{
				"description": "Refused or failed", "content": object{problem.ContentType: object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
			}},
		},
	}
}

func (rt *route) operation() object {
	op := object{
		"summary": rt.summary, "operationId": rt.id(),
		"responses": object{strconv.Itoa(rt.success()): object{"description": "Done"}, "default": object{"$ref": "#/components/responses/Problem"}},
	}
	var params []object
	for _, part := range strings.Split(rt.path, "/") {
		if name, isParam := strings.CutPrefix(part, "{"); isParam {
			params = append(params, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	if rt.open {
		op["security"] = []object{}
	} else {
		for _, q := range append([]string{"org"}, rt.query...) {
			params = append(params, object{"name": q, "in": "query", "schema": object{"type": "string"}})
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	if content := rt.content(); content != nil {
		op["requestBody"] = object{"required": true, "content": content}
	}
	return op
}

// content is what the operation reads, by media type.
func (rt *route) content() object {
	switch rt.body {
	case bodyJSON:
		return object{"application/json": object{"schema": object{"type": "object"}}}
	case bodyModule:
		binary := object{"schema": object{}} // OpenAPI 3.1: binary content has no schema
		return object{"application/wasm": binary, "multipart/form-data": object{"schema": object{
			"type": "object", "required": []string{"module"}, "additionalProperties": false,
			"properties": object{"module": object{"contentMediaType": "application/wasm"}, "manifest": object{"contentMediaType": "application/json"}},
		}}}
	}
	return nil
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

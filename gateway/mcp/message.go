package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// The error codes of JSON-RPC 2.0, and the protocol's own, that are sent.
const (
	codeParse          = jsonrpc.CodeParseError
	codeInvalidRequest = jsonrpc.CodeInvalidRequest
	codeNoMethod       = jsonrpc.CodeMethodNotFound
	codeInvalidParams  = jsonrpc.CodeInvalidParams
	codeInternal       = jsonrpc.CodeInternalError
	codeVersion        = sdk.CodeUnsupportedProtocolVersion
)

// message is one JSON-RPC request or notification, read far enough to refuse what is none.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`

	progress bool // its progress is wanted
}

func (m *message) notification() bool { return m.ID == nil }

// cancels is the id of the request that a cancellation names.
func (m *message) cancels() json.RawMessage {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &p) // no id is nobody's
	return p.ID
}

// methods are the requests that are answered, with the form of their parameters. It is read here, because
// the protocol's server says in its own words, and the caller's, what it could not read.
var methods = map[string]func() any{
	"initialize":      func() any { return new(sdk.InitializeParams) },
	"server/discover": func() any { return new(sdk.DiscoverParams) },
	"ping":            func() any { return new(sdk.PingParams) },
	"tools/list":      func() any { return new(sdk.ListToolsParams) },
	"tools/call":      func() any { return new(sdk.CallToolParamsRaw) },
}

// fault is what a request is answered with that is not a message of the protocol.
type fault struct {
	id      json.RawMessage // nil: it is not known
	status  int             // of HTTP
	code    int64           // of JSON-RPC
	message string
	data    any // instead of the problem document
	why     *abi.Error
}

func newFault(id json.RawMessage, status int, code int64, why *abi.Error) *fault {
	return &fault{id: id, status: status, code: code, message: why.Message, why: why}
}

// readMessage reads a body. Batches are refused: of one message there is one decision (PF-A3).
func readMessage(body []byte, version string) (*message, *fault) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		return nil, newFault(nil, http.StatusBadRequest, codeInvalidRequest, abi.Errorf(abi.CodeInvalidRequest, "batches are not taken; send each message by itself"))
	}
	m := &message{}
	if err := abi.DecodeStrict(body, m); err != nil {
		code := int64(codeParse)
		if abi.CodeOf(err) == abi.CodeUnknownField {
			code = codeInvalidRequest
		}
		return nil, newFault(nil, http.StatusBadRequest, code, abi.AsError(err))
	}
	switch {
	case m.JSONRPC != "2.0" || m.Method == "":
		return nil, newFault(validID(m.ID), http.StatusBadRequest, codeInvalidRequest, abi.Errorf(abi.CodeInvalidRequest, "the body is no JSON-RPC 2.0 request"))
	case m.ID != nil && validID(m.ID) == nil:
		return nil, newFault(nil, http.StatusBadRequest, codeInvalidRequest, abi.Errorf(abi.CodeInvalidRequest, "the id is neither a text nor a whole number").At("/id"))
	case m.notification():
		return m, nil
	}
	if version != "" && !slices.Contains([]string{versionStateless, versionSessions}, version) {
		f := newFault(m.ID, http.StatusBadRequest, codeVersion, abi.Errorf(abi.CodeInvalidRequest, "this version of the protocol is not spoken here"))
		f.data = sdk.UnsupportedProtocolVersionData{Supported: []string{versionStateless, versionSessions}, Requested: version}
		return nil, f
	}
	params, known := methods[m.Method]
	if !known {
		status := http.StatusOK
		if version == versionStateless {
			status = http.StatusNotFound
		}
		return nil, newFault(m.ID, status, codeNoMethod, abi.Errorf(abi.CodeInvalidRequest, "there is no such method"))
	}
	if m.Params == nil {
		return m, nil
	}
	var meta struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(m.Params, params()) != nil || json.Unmarshal(m.Params, &meta) != nil {
		return nil, newFault(m.ID, http.StatusBadRequest, codeInvalidParams, abi.Errorf(abi.CodeInvalidRequest, "the parameters are not those of the method").At("/params"))
	}
	m.progress = m.Method == "tools/call" && validID(meta.Meta.Token) != nil
	return m, nil
}

// validID is an id as it is to be sent back: a text or a whole number, or nil.
func validID(raw json.RawMessage) json.RawMessage {
	var text string
	var number int64
	if raw == nil || json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &number) != nil || string(raw) == "null" {
		return nil
	}
	return raw
}

// writeFault answers with a JSON-RPC error; d is the problem document of the refusal, or nil.
func writeFault(w http.ResponseWriter, f *fault, d *problem.Document) {
	type inner struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	out := struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   inner           `json:"error"`
	}{"2.0", f.id, inner{f.code, f.message, f.data}}
	if out.ID == nil {
		out.ID = json.RawMessage("null")
	}
	if f.data == nil && d != nil {
		out.Error.Data = d
	}
	raw, err := json.Marshal(out)
	if err != nil {
		raw = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(f.status)
	_, _ = w.Write(raw)
}

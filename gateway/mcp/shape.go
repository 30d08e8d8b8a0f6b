package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// shape is what the tools are.
type shape interface {
	// instructions are for the model.
	instructions() string
	// list is one page of the tools of the caller.
	list(context.Context, *exchange, *sdk.ListToolsRequest) (*sdk.ListToolsResult, error)
	// call calls the tool of that name. An error is a fault of the protocol; a denial is a result.
	call(context.Context, *exchange, string, *sdk.CallToolRequest) (*sdk.CallToolResult, error)
}

// dispatched is the one tool that the protocol's server knows: which tools there are is asked anew with every
// request, of the pipeline.
const dispatched = "dispatch"

type toolKey struct{}

// intercept lists the caller's tools, and gives every call to the one tool there is.
func (s *Server) intercept(sh shape) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(c context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
			// The protocol's server does not recover: one broken request would take every other one along.
			defer func() {
				if p := recover(); p != nil {
					s.o.Log.Error("a request failed inside", "method", method, "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
					res, err = nil, rpcError(codeInternal, problem.From(abi.Errorf(abi.CodeInternal, "the request could not be served"), ""))
				}
			}()
			switch r := req.(type) {
			case *sdk.ListToolsRequest:
				if r.Params == nil {
					r.Params = &sdk.ListToolsParams{}
				}
				page, err := sh.list(c, exchangeOf(c), r)
				if err != nil {
					return nil, err
				}
				private(c, r, &page.Cacheable)
				return page, nil
			case *sdk.CallToolRequest:
				c = context.WithValue(c, toolKey{}, r.Params.Name)
				r.Params.Name = dispatched
			}
			return next(c, method, req)
		}
	}
}

// dispatch calls the tool that was named.
func (s *Server) dispatch(sh shape) sdk.ToolHandler {
	return func(c context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		name, _ := c.Value(toolKey{}).(string)
		defer s.progress(c, req)()
		return sh.call(c, exchangeOf(c), name, req)
	}
}

// rpcError is a fault of the protocol, with the problem document as its data.
func rpcError(code int64, d problem.Document) error {
	message := d.Detail
	if message == "" {
		message = d.Title
	}
	return &jsonrpc.Error{Code: code, Message: message, Data: json.RawMessage(d.Encode())}
}

// unusable records and answers a call that names nothing that could be called.
func (s *Server) unusable(c context.Context, x *exchange, why *abi.Error) error {
	return rpcError(codeInvalidParams, s.o.Pipeline.RefusedCaller(c, x.request(), why))
}

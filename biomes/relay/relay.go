package main

import (
	"encoding/json"
	"errors"

	"github.com/ecotone-dev/ecotone/guest"
)

type in struct {
	Ref   string          `json:"ref"`
	Input json.RawMessage `json:"input"`
}

type out struct {
	OK     bool            `json:"ok"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  *refusal        `json:"error,omitempty"`
}

// refusal is why there is no output. Errno is the host's number by name; the rest is there
// when the child ran and failed.
type refusal struct {
	Errno   string `json:"errno"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	AuditID string `json:"auditId,omitempty"`
}

func doInvoke(req in) (out, error) {
	input := req.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	output, err := guest.Invoke(req.Ref, input)
	var child *guest.ChildError
	var refused guest.Errno
	switch {
	case err == nil:
		return out{OK: true, Output: output}, nil
	case errors.As(err, &child):
		return out{Error: &refusal{guest.ECHILD.String(), child.Code, child.Detail, child.AuditID}}, nil
	case errors.As(err, &refused):
		return out{Error: &refusal{Errno: refused.String(), Message: refused.Error()}}, nil
	}
	return out{}, err
}

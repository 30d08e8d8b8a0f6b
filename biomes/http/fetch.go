package main

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/guest"
)

// Bounds of the body in an answer, in bytes. The larger one keeps an answer within 1 MiB even
// when JSON has to escape every byte.
const (
	defaultBody = 100_000
	maxBody     = 160_000
)

type in struct {
	URL      string            `json:"url"`
	Method   string            `json:"method"` // GET when empty
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	Secret   string            `json:"secret"`   // a secret's name; the host puts its value in
	MaxBytes int               `json:"maxBytes"` // of the body in the answer; 0 is 100,000
}

type out struct {
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Encoding  string            `json:"encoding"` // text, or base64 when the body is not UTF-8
	Size      int               `json:"size"`     // of the whole body
	Truncated bool              `json:"truncated"`
}

// names says the host's refusals as the caller of a fetch knows them.
var names = map[guest.Errno]guest.Failure{
	guest.EINVAL:   {Code: "REQUEST_INVALID", Message: "the URL, a header or the method is not of the documented form"},
	guest.EDENIED:  {Code: "DENIED", Message: "no endpoint rule allows this request, or this invocation may not send it"},
	guest.ESECRET:  {Code: "SECRET_DENIED", Message: "the secret is not there or not for this use"},
	guest.EQUOTA:   {Code: "HTTP_BUDGET_EXHAUSTED", Message: "the invocation used up its requests"},
	guest.ETIMEOUT: {Code: "UPSTREAM_TIMEOUT", Message: "the origin did not answer in time"},
	guest.EIO:      {Code: "UPSTREAM_FAILED", Message: "the origin could not be reached or broke the protocol"},
	guest.ETOOBIG:  {Code: "TOO_LARGE", Message: "the request or the response is larger than allowed"},
}

func doFetch(req in) (out, error) {
	if req.Method == "" {
		req.Method = "GET"
	}
	if req.MaxBytes == 0 {
		req.MaxBytes = defaultBody
	}
	if req.MaxBytes < 0 || req.MaxBytes > maxBody {
		return out{}, guest.Failf("ARGUMENT_INVALID", "maxBytes is 1 to %d", maxBody)
	}
	resp, err := guest.Fetch(guest.Request{
		Method: req.Method, URL: req.URL, Headers: req.Headers, Secret: req.Secret, Body: []byte(req.Body),
	})
	if err != nil {
		return out{}, failure(err)
	}
	return answer(resp, req.MaxBytes), nil
}

func failure(err error) error {
	var refused guest.Errno
	if !errors.As(err, &refused) {
		return err
	}
	f, ok := names[refused]
	if !ok {
		return err
	}
	f.Cause = err
	return &f
}

func answer(resp *guest.Response, most int) out {
	a := out{Status: resp.Status, Headers: map[string]string{}, Size: len(resp.Body), Encoding: "text"}
	for name, value := range resp.Headers {
		a.Headers[strings.ToLower(name)] = value
	}
	body := resp.Body
	a.Truncated = len(body) > most
	if utf8.Valid(body) {
		for most < len(body) && !utf8.RuneStart(body[most]) {
			most--
		}
		a.Body = string(body[:min(most, len(body))])
		return a
	}
	a.Encoding = "base64"
	a.Body = base64.StdEncoding.EncodeToString(body[:min(most, len(body))])
	return a
}

package admin

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/guard"
)

// maxJSONBody bounds a JSON document, in bytes.
const maxJSONBody = 1 << 20

// readBody reads what the route takes, bounded, and refuses what it does not take.
func (s *Server) readBody(w http.ResponseWriter, rt route, c *call) error {
	if c.r.Header.Get("Idempotency-Key") != "" {
		return abi.Errorf(abi.CodeIdempotencyUnbuilt, "Idempotency-Key is not supported yet")
	}
	if rt.body == bodyNone {
		if c.r.ContentLength > 0 || len(c.r.TransferEncoding) > 0 {
			return abi.Errorf(abi.CodeInvalidRequest, "this operation takes no body")
		}
		return nil
	}
	media, params, err := contentType(c.r)
	if err != nil {
		return err
	}
	if c.r.Header.Get("Content-Encoding") != "" {
		return abi.Errorf(abi.CodeUploadUnsupported, "bodies are sent without a content encoding")
	}
	switch {
	case rt.body == bodyJSON && media == "application/json" && guard.OnlyUTF8(params):
		c.body, err = readAll(w, c.r, maxJSONBody)
	case rt.body == bodyModule && media == "application/wasm" && len(params) == 0:
		c.body, err = readAll(w, c.r, s.o.MaxUpload)
	case rt.body == bodyModule && media == "multipart/form-data":
		c.body, c.manifest, err = s.readForm(w, c.r, params["boundary"])
	default:
		err = abi.Errorf(abi.CodeUnsupportedMedia, "the body must be %s", rt.body.mediaType())
	}
	return err
}

func contentType(r *http.Request) (media string, params map[string]string, err error) {
	values := r.Header.Values("Content-Type")
	if len(values) == 1 {
		media, params, err = mime.ParseMediaType(values[0])
	}
	if len(values) != 1 || err != nil {
		return "", nil, abi.Errorf(abi.CodeUnsupportedMedia, "exactly one well-formed Content-Type is needed")
	}
	return media, params, nil
}

func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, unread(r, limit)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	return raw, bodyError(err, limit)
}

// mostUnread is how much is read of a body only to throw it away, in bytes.
const mostUnread = 32 << 20

// unread refuses a body that says it is too large. A client that is already sending one of a
// common size is let finish, because it would otherwise find its connection reset and never
// see why; one that waits to be told to go on (RFC 9110, 10.1.1) is not made to send.
func unread(r *http.Request, limit int64) *abi.Error {
	if r.ContentLength <= mostUnread && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength)
	}
	return tooLarge(limit)
}

func tooLarge(limit int64) *abi.Error {
	return abi.Errorf(abi.CodePayloadTooLarge, "the body is larger than %d bytes", limit)
}

func bodyError(err error, limit int64) error {
	var over *http.MaxBytesError
	var slow net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &over):
		return tooLarge(limit)
	case errors.As(err, &slow) && slow.Timeout():
		return abi.Errorf(abi.CodeInvalidRequest, "the body did not arrive in time")
	}
	return abi.Errorf(abi.CodeInvalidRequest, "the body did not arrive whole: %w", err)
}

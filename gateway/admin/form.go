package admin

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/guard"
)

// multipartSlack is what a multipart upload may add to its parts, in bytes.
const multipartSlack = 4 << 10

// formParts are the parts of an upload in two parts. Each is there exactly once; there is no other.
var formParts = map[string]string{"module": "application/wasm", "manifest": "application/json"}

// readForm reads a module and the manifest beside it (RFC 7578). File names are not looked at
// (PF-C5). What the form could hide is refused: text before and after the parts, headers of a part
// that say how to read it otherwise.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request, boundary string) (module, manifest []byte, err error) {
	body, err := readAll(w, r, s.o.MaxUpload+abi.MaxManifestBytes+multipartSlack)
	if err != nil {
		return nil, nil, err
	}
	if boundary == "" || !framed(body, boundary) {
		return nil, nil, abi.Errorf(abi.CodeInvalidRequest, "the body is not one whole form: it begins and ends with its boundary, and nothing is around it")
	}
	parts := map[string][]byte{}
	most := map[string]int64{"module": s.o.MaxUpload, "manifest": abi.MaxManifestBytes}
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, malformedForm(err)
		}
		name := part.FormName()
		if _, again := parts[name]; again || formParts[name] == "" {
			return nil, nil, abi.Errorf(abi.CodeInvalidRequest, "the form has the parts module and manifest, each once; found %s", abi.Quote(name))
		}
		if err := checkPart(part, name); err != nil {
			return nil, nil, err
		}
		raw, err := io.ReadAll(io.LimitReader(part, most[name]+1))
		if err != nil {
			return nil, nil, malformedForm(err)
		}
		if int64(len(raw)) > most[name] {
			return nil, nil, tooLarge(most[name])
		}
		parts[name] = raw
	}
	for _, name := range []string{"module", "manifest"} {
		if parts[name] == nil {
			return nil, nil, abi.Errorf(abi.CodeInvalidRequest, "the form has no part named %s", name).
				WithHint("a module that carries its manifest is sent alone, as application/wasm")
		}
	}
	return parts["module"], parts["manifest"], nil
}

func malformedForm(err error) error {
	return abi.Errorf(abi.CodeInvalidRequest, "the form is malformed: %w", err)
}

// framed reports whether body is a form from its first byte to its last: a reader of forms skips what
// is around one.
func framed(body []byte, boundary string) bool {
	line := "--" + boundary
	last := []byte("\r\n" + line + "--")
	return bytes.HasPrefix(body, []byte(line+"\r\n")) && bytes.Index(body, last)+len(last) == len(bytes.TrimSuffix(body, []byte("\r\n")))
}

// checkPart holds a part to its type, and to the two headers a part has.
func checkPart(part *multipart.Part, name string) error {
	for key, values := range part.Header {
		if (key != "Content-Disposition" && key != "Content-Type") || len(values) != 1 {
			return abi.Errorf(abi.CodeInvalidRequest, "a part has one Content-Disposition and one Content-Type; found %s", abi.Quote(key))
		}
	}
	media, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil || media != formParts[name] || (name == "module" && len(params) > 0) || !guard.OnlyUTF8(params) {
		return abi.Errorf(abi.CodeUnsupportedMedia, "the part %s must be %s", name, formParts[name])
	}
	return nil
}

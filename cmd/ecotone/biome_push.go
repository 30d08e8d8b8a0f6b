package main

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
)

// BiomePushCmd uploads.
type BiomePushCmd struct {
	Module   string `arg:"" help:"Module, with its manifest in it unless --manifest is given." type:"existingfile"`
	Manifest string `help:"Manifest to send beside the module, which is uploaded as it is." type:"existingfile" placeholder:"FILE"`
}

// Run uploads one biome and prints what was admitted.
func (c *BiomePushCmd) Run(e *Env) error {
	body, err := os.ReadFile(c.Module)
	if err != nil {
		return err
	}
	media := "application/wasm"
	if c.Manifest != "" {
		manifest, err := os.ReadFile(c.Manifest)
		if err != nil {
			return err
		}
		if body, media, err = uploadForm(body, manifest); err != nil {
			return err
		}
	}
	res, err := e.conn.call(e.ctx, e.conn.Admin, http.MethodPost, "/v1/biomes"+e.orgQuery(), http.Header{"Content-Type": {media}}, body)
	if err != nil {
		return refusedModule(e, err)
	}
	return e.show(res.body, uploadText)
}

// uploadForm is a module and its manifest as the control plane takes them, and the form's type.
func uploadForm(module, manifest []byte) (body []byte, media string, err error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range []struct {
		name, media string
		content     []byte
	}{{"module", "application/wasm", module}, {"manifest", "application/json", manifest}} {
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"`, p.name)}, "Content-Type": {p.media},
		})
		if err == nil {
			_, err = io.Copy(part, bytes.NewReader(p.content))
		}
		if err != nil {
			return nil, "", err
		}
	}
	err = form.Close()
	return b.Bytes(), form.FormDataContentType(), err
}

package servertest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// part is one part of a form; an empty media type leaves the header out.
type part struct {
	disposition, media string
	body               []byte
}

// named is a part as it should be.
func named(name string, body []byte) part {
	media := map[string]string{"module": "application/wasm", "manifest": "application/json"}[name]
	return part{`form-data; name="` + name + `"`, media, body}
}

// form encodes parts; it returns the body and its content type.
func form(parts ...part) ([]byte, string) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {p.disposition}}
		if p.media != "" {
			h.Set("Content-Type", p.media)
		}
		dst, _ := m.CreatePart(h)
		_, _ = dst.Write(p.body)
	}
	_ = m.Close()
	return b.Bytes(), m.FormDataContentType()
}

// echoBeside is a module without a manifest that answers its input, and a manifest for it.
func echoBeside(biome string) (module, manifest []byte) {
	m := w.Manifest(biome, w.Provide("test:"+biome+".do@1", "run", abi.ReachOwner))
	module, err := wasm.StripCustom(w.Echo(m), nil)
	if err != nil {
		panic(err)
	}
	manifest, err = json.MarshalIndent(m, "", "  ") // not as this project writes it
	if err != nil {
		panic(err)
	}
	return module, manifest
}

// A module that nobody wanted to change is uploaded with its manifest beside it. Both are kept to the
// byte, the digest is over both, and nothing of it depends on what is loaded or compiled.
func TestUploadManifestBeside(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	module, manifest := echoBeside("beside")
	body, media := form(named("manifest", manifest), named("module", module)) // in any order
	var up struct {
		Biome  struct{ Digest string }
		Report struct{ Digest string }
	}
	g.Control("POST", "/v1/biomes", body, "Content-Type", media).Want(201).JSON(&up)
	digest := wasm.Digest(manifest, module)
	if up.Biome.Digest != digest || up.Report.Digest != digest {
		t.Errorf("digests %+v, want %s", up, digest)
	}
	g.Control("POST", "/v1/biomes", body, "Content-Type", media).Want(200) // PF-I3
	kept := func() map[string][]byte {
		out := map[string][]byte{}
		for name := range filesBelow(t, filepath.Join(g.Dir, "modules")) {
			out[filepath.Base(name)], _ = os.ReadFile(filepath.Join(g.Dir, "modules", filepath.Base(name)))
		}
		return out
	}
	want := map[string][]byte{digest + ".wasm": module, digest + ".json": manifest}
	if diff := cmp.Diff(want, kept()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	g.Install("beside", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "test:beside.do@1", "project")
	try := func(g *servertest.Gateway) {
		t.Helper()
		r := g.Open("user:alice", "project", nil).Invoke("test:beside.do@1", map[string]int{"n": 1}).Want(200)
		if string(r.Body) != `{"n":1}` {
			t.Errorf("answered %s", r.Body)
		}
	}
	try(g)
	g.Stop()

	// What a crash leaves of an upload is not one: a manifest without its module goes.
	orphan := filepath.Join(g.Dir, "modules", strings.Repeat("0", 64)+".json")
	if err := os.WriteFile(orphan, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	g = servertest.Start(t, servertest.In(g.Dir))
	if diff := cmp.Diff(want, kept()); diff != "" {
		t.Errorf("kept over a restart (-want +got):\n%s", diff)
	}
	try(g)
	g.Stop()

	// Without its compiled form it is compiled again, from what was kept.
	for name := range filesBelow(t, filepath.Join(g.Dir, "cache")) {
		if err := os.Remove(filepath.Join(g.Dir, "cache", name)); err != nil {
			t.Fatal(err)
		}
	}
	g = servertest.Start(t, servertest.In(g.Dir))
	soon(t, "it is compiled again", func() bool {
		return g.Open("user:alice", "project", nil).Invoke("test:beside.do@1", 1).Status == 200
	})
	try(g)
	g.Stop()

	// S14: a manifest that is another than the uploaded one is not believed, nor is one that is gone.
	file := filepath.Join(g.Dir, "modules", digest+".json")
	for _, damage := range []func() error{
		func() error {
			return os.WriteFile(file, bytes.Replace(manifest, []byte("owner"), []byte("owner "), 1), 0o600)
		},
		func() error { return os.Remove(file) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		g = servertest.Start(t, servertest.In(g.Dir))
		g.Open("user:alice", "project", nil).Invoke("test:beside.do@1", 1).Refused(abi.CodeInternal)
		g.Stop()
	}
}

// A module that carries its manifest is the same biome whether that comes beside it too or not; with
// another one beside it, it is refused.
func TestUploadManifestTwice(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	m := w.Manifest("both", w.Provide("test:both.do@1", "run", abi.ReachOwner))
	module, manifest := w.Echo(m), w.MustJSON(m)
	body, media := form(named("module", module), named("manifest", manifest))
	g.Control("POST", "/v1/biomes", body, "Content-Type", media).Want(201)
	g.Upload(module).Want(200)
	if files := filesBelow(t, filepath.Join(g.Dir, "modules")); len(files) != 1 {
		t.Errorf("stored: %v", slices.Collect(maps.Keys(files)))
	}
	for name, other := range map[string][]byte{
		"another version":     bytes.Replace(manifest, []byte("1.0.0"), []byte("1.0.1"), 1),
		"another white space": append(slices.Clone(manifest), '\n'),
	} {
		body, media := form(named("module", module), named("manifest", other))
		r := g.Control("POST", "/v1/biomes", body, "Content-Type", media).Refused(abi.CodeModuleRefused)
		if !bytes.Contains(r.Body, []byte("another manifest than the one beside it")) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
	twice := wasm.AppendCustom(module, abi.ManifestSection, manifest)
	body, media = form(named("module", twice), named("manifest", manifest))
	r := g.Control("POST", "/v1/biomes", body, "Content-Type", media).Refused(abi.CodeModuleRefused)
	if !bytes.Contains(r.Body, []byte("more than once")) {
		t.Errorf("two sections: %s", r.Body)
	}
}

// Whatever a form is beside two parts with their types is refused with its code and recorded, and
// nothing is kept. PF-A4, PF-D17
func TestUploadForm(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, smallUploads)
	before := kept(t, g)
	const b = "boundary"
	media := `multipart/form-data; boundary=` + b
	module, manifest := bare(), manifestOf("form")
	big := make([]byte, uploadMost+1)
	raw := func(pieces ...string) []byte { return []byte(strings.Join(pieces, "")) }
	head := func(name, media string) string {
		return "Content-Disposition: form-data; name=\"" + name + "\"\r\nContent-Type: " + media + "\r\n\r\n"
	}
	m, j := head("module", "application/wasm")+string(module), head("manifest", "application/json")+string(manifest)
	good := raw("--"+b+"\r\n", m, "\r\n--"+b+"\r\n", j, "\r\n--"+b+"--\r\n")
	change := func(old, new string) []byte {
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("the form has no %q", old)
		}
		return bytes.Replace(good, []byte(old), []byte(new), 1)
	}
	type row struct {
		name  string
		body  []byte
		media string
		want  abi.Code
	}
	rows := []row{
		{"no boundary", good, "multipart/form-data", abi.CodeInvalidRequest},
		{"another boundary", good, "multipart/form-data; boundary=other", abi.CodeInvalidRequest},
		{"a longer boundary", good, "multipart/form-data; boundary=" + b + "x", abi.CodeInvalidRequest},
		{"another multipart", good, strings.Replace(media, "form-data", "mixed", 1), abi.CodeUnsupportedMedia},
		{"empty", nil, media, abi.CodeInvalidRequest},
		{"no parts", raw("--" + b + "--\r\n"), media, abi.CodeInvalidRequest},
		{"text before", append([]byte("\r\n"), good...), media, abi.CodeInvalidRequest},
		{"text after", append(slices.Clone(good), "more"...), media, abi.CodeInvalidRequest},
		{"a second form", append(slices.Clone(good), good...), media, abi.CodeInvalidRequest},
		{"line feeds", bytes.ReplaceAll(good, []byte("\r\n"), []byte("\n")), media, abi.CodeInvalidRequest},
		{"half", good[:len(good)/2], media, abi.CodeInvalidRequest},
		{"no end", good[:len(good)-4], media, abi.CodeInvalidRequest},
		{"the module as text", change("application/wasm", "text/plain"), media, abi.CodeUnsupportedMedia},
		{"the module as octets", change("application/wasm", "application/octet-stream"), media, abi.CodeUnsupportedMedia},
		{"the manifest as text", change("application/json", "text/plain"), media, abi.CodeUnsupportedMedia},
		{"types exchanged", raw("--"+b+"\r\n", head("module", "application/json"), string(module), "\r\n--"+b+"\r\n", head("manifest", "application/wasm"), string(manifest), "\r\n--"+b+"--\r\n"), media, abi.CodeUnsupportedMedia},
		{"a parameter", change("application/wasm", "application/wasm; x=1"), media, abi.CodeUnsupportedMedia},
		{"latin-1", change("application/json", "application/json; charset=iso-8859-1"), media, abi.CodeUnsupportedMedia},
		{"no type", change("Content-Type: application/wasm\r\n", ""), media, abi.CodeUnsupportedMedia},
		{"two types", change("Content-Type: application/wasm\r\n", "Content-Type: application/wasm\r\nContent-Type: application/wasm\r\n"), media, abi.CodeInvalidRequest},
		{"base64", change("Content-Type: application/wasm\r\n", "Content-Type: application/wasm\r\nContent-Transfer-Encoding: base64\r\n"), media, abi.CodeInvalidRequest},
		{"gzip", change("Content-Type: application/wasm\r\n", "Content-Type: application/wasm\r\nContent-Encoding: gzip\r\n"), media, abi.CodeInvalidRequest},
		{"an attachment", change("form-data; name=\"module\"", "attachment; name=\"module\""), media, abi.CodeInvalidRequest},
		{"two names", change("name=\"module\"", "name=\"module\"; name=\"manifest\""), media, abi.CodeInvalidRequest},
		{"another case", change("name=\"module\"", "name=\"Module\""), media, abi.CodeInvalidRequest},
		{"a module in the manifest", change(string(manifest), string(module)), media, abi.CodeModuleRefused},
		{"a manifest twice itself", change(string(manifest), string(manifest)+string(manifest)), media, abi.CodeModuleRefused},
	}
	for _, c := range []struct {
		name  string
		parts []part
		want  abi.Code
	}{
		{"module too large", []part{named("module", big), named("manifest", manifest)}, abi.CodePayloadTooLarge},
		{"manifest too large", []part{named("module", module), named("manifest", make([]byte, abi.MaxManifestBytes+1))}, abi.CodePayloadTooLarge},
		{"form too large", []part{named("module", make([]byte, uploadMost+abi.MaxManifestBytes+8<<10))}, abi.CodePayloadTooLarge},
		{"module twice", []part{named("module", module), named("module", module)}, abi.CodeInvalidRequest},
		{"manifest twice", []part{named("module", module), named("manifest", manifest), named("manifest", manifest)}, abi.CodeInvalidRequest},
		{"no module", []part{named("manifest", manifest)}, abi.CodeInvalidRequest},
		{"no manifest", []part{named("module", module)}, abi.CodeInvalidRequest},
		{"another part", []part{named("module", module), named("manifest", manifest), named("environment", []byte("system"))}, abi.CodeInvalidRequest},
		{"a part without a name", []part{{"form-data", "application/wasm", module}}, abi.CodeInvalidRequest},
		{"a bad manifest", []part{named("module", module), named("manifest", []byte(`{"name":1}`))}, abi.CodeModuleRefused},
		{"an empty manifest", []part{named("module", module), named("manifest", nil)}, abi.CodeModuleRefused},
		{"an empty module", []part{named("module", nil), named("manifest", manifest)}, abi.CodeModuleRefused},
		{"text as module", []part{named("module", []byte("(module)")), named("manifest", manifest)}, abi.CodeModuleRefused},
		{"a component", []part{named("module", []byte("\x00asm\x0d\x00\x01\x00")), named("manifest", manifest)}, abi.CodeModuleRefused},
	} {
		body, media := form(c.parts...)
		rows = append(rows, row{c.name, body, media, c.want})
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			r := g.Control("POST", "/v1/biomes", c.body, "Content-Type", c.media).Refused(c.want)
			if row := rowOfRefusal(t, g, r); row["refused"].(map[string]any)["code"] != string(c.want) {
				t.Errorf("the row says %v", row)
			}
		})
	}
	if diff := cmp.Diff(before, kept(t, g)); diff != "" {
		t.Errorf("something was kept (-before +after):\n%s", diff)
	}
	g.Control("POST", "/v1/biomes", good, "Content-Type", media).Want(201) // what all of them differ from
}

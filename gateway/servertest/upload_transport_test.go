package servertest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// uploadMost is what the gateways of this file take as an upload, in bytes.
const uploadMost = 64 << 10

func smallUploads(o *server.Options) {
	_ = o.Limits.Set("uploadBytes", uploadMost)
	_ = o.Limits.Set("moduleBytes", uploadMost)
}

// bare is a module without a manifest.
func bare() []byte {
	b := w.New()
	b.Capability("run", w.Op(0x41, 0))
	return b.Memory(1).ExportMemory().Bytes()
}

func manifestOf(biome string) []byte {
	return w.MustJSON(w.Manifest(biome, w.Provide("test:"+biome+".do@1", "run", abi.ReachOwner)))
}

// PF-C5: names of files in a form are never looked at; what is stored is named by its digest.
func TestUploadFileNames(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, smallUploads)
	outside := filesBelow(t, filepath.Dir(g.Dir))
	for i, name := range []string{
		"../../x.wasm", "/etc/passwd", `C:\\x.wasm`, "CON", "a\x00b", "a%0d%0aX-Evil: 1", ".", "..", "~", strings.Repeat("n", 4096), "module.wasm; name=other", "\xff\xfe",
	} {
		body, contentType := form(
			part{`form-data; name="module"; filename="` + name + `"`, "application/wasm", bare()},
			part{`form-data; name="manifest"; filename="` + name + `"`, "application/json", manifestOf("form")},
		)
		r := g.Control("POST", "/v1/biomes", body, "Content-Type", contentType)
		switch {
		case r.Status == 400: // not a form that Go's parser takes: refused is fine too
			wellFormed(t, r)
		case r.Status != 200 && r.Status != 201:
			t.Errorf("%d %.20q: %d %.300s", i, name, r.Status, r.Body)
		}
		if r.Header.Get("X-Evil") != "" || bytes.Contains(r.Body, []byte(".wasm")) {
			t.Errorf("the name came back: %v %s", r.Header, r.Body)
		}
	}
	stored := filesBelow(t, filepath.Join(g.Dir, "modules"))
	if len(stored) != 2 { // a module and its manifest, which are the same every time
		t.Errorf("stored: %v", stored)
	}
	for name := range filesBelow(t, filepath.Dir(g.Dir)) {
		if _, was := outside[name]; !was && !strings.HasPrefix(name, "/data/") {
			t.Errorf("a file outside the data directory: %s", name)
		}
	}
}

// Everything about the transport of an upload that is not as documented is refused with its
// code and recorded, and nothing is kept. PF-A4, PF-D17
func TestUploadTransport(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, smallUploads)
	before := kept(t, g)
	whole := w.Echo(w.Manifest("whole", w.Provide("test:whole.do@1", "run", abi.ReachOwner)))
	big := make([]byte, uploadMost+1)
	one := func(body []byte, header ...string) []string { return append([]string{string(body)}, header...) }
	cut, cutType := form(named("module", bare()), named("manifest", manifestOf("form")))
	for _, c := range []struct {
		name string
		send []string // the body and its headers
		want abi.Code
	}{
		{"text", one(whole, "Content-Type", "text/plain"), abi.CodeUnsupportedMedia},
		{"octets", one(whole, "Content-Type", "application/octet-stream"), abi.CodeUnsupportedMedia},
		{"json", one(whole, "Content-Type", "application/json"), abi.CodeUnsupportedMedia},
		{"a parameter", one(whole, "Content-Type", "application/wasm; charset=utf-8"), abi.CodeUnsupportedMedia},
		{"empty type", one(whole, "Content-Type", ""), abi.CodeUnsupportedMedia},
		{"two types", one(whole, "Content-Type", "application/wasm, application/wasm"), abi.CodeUnsupportedMedia},
		{"another multipart", one(cut, "Content-Type", strings.Replace(cutType, "form-data", "mixed", 1)), abi.CodeUnsupportedMedia},
		{"gzip", one(whole, "Content-Type", "application/wasm", "Content-Encoding", "gzip"), abi.CodeUploadUnsupported},
		{"identity", one(whole, "Content-Type", "application/wasm", "Content-Encoding", "identity"), abi.CodeUploadUnsupported},
		{"idempotency", one(whole, "Content-Type", "application/wasm", "Idempotency-Key", "1"), abi.CodeIdempotencyUnbuilt},
		{"too large", one(big, "Content-Type", "application/wasm"), abi.CodePayloadTooLarge},
		{"empty", one(nil, "Content-Type", "application/wasm"), abi.CodeModuleRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.Control("POST", "/v1/biomes", []byte(c.send[0]), c.send[1:]...).Refused(c.want)
			if row := rowOfRefusal(t, g, r); row["refused"].(map[string]any)["code"] != string(c.want) {
				t.Errorf("the row says %v", row)
			}
		})
	}
	if diff := cmp.Diff(before, kept(t, g)); diff != "" {
		t.Errorf("something was kept (-before +after):\n%s", diff)
	}
}

// chunks is a chunked body that never ends.
type chunks struct{ sent *int64 }

func (c chunks) Read(p []byte) (int, error) { *c.sent += int64(len(p)); return len(p), nil }

// PF-D17, PF-A11: a body past the limit is refused by what its head says, before any of it is
// read; a chunked one as soon as it is past the limit; and without a credential before either.
func TestUploadOversized(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, smallUploads)
	head := func(token, length string) string {
		auth := ""
		if token != "" {
			auth = "Authorization: Bearer " + token + "\r\n"
		}
		return "POST /v1/biomes HTTP/1.1\r\nHost: " + strings.TrimPrefix(g.Admin, "http://") + "\r\n" + auth + "Content-Type: application/wasm\r\n" + length + "\r\n\r\n"
	}
	for name, c := range map[string]struct {
		token, length string
		want          abi.Code
	}{
		"length":           {g.Operator, "Content-Length: 1099511627776", abi.CodePayloadTooLarge},
		"expect":           {g.Operator, "Expect: 100-continue\r\nContent-Length: 1099511627776", abi.CodePayloadTooLarge},
		"nobody":           {"", "Content-Length: 1099511627776", abi.CodeUnauthenticated},
		"nobody expects":   {"", "Expect: 100-continue\r\nContent-Length: 10", abi.CodeUnauthenticated},
		"nobody in chunks": {"", "Transfer-Encoding: chunked", abi.CodeUnauthenticated},
	} {
		r := sendRaw(t, g.Admin, head(c.token, c.length))
		if r == nil {
			t.Errorf("%s: no answer", name)
			continue
		}
		r.Refused(c.want)
	}
	var sent int64
	req, err := http.NewRequest("POST", g.Admin+"/v1/biomes", io.NopCloser(chunks{&sent}))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/wasm")
	req.Header.Set("Authorization", "Bearer "+g.Operator)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 413 || sent > 32<<20 {
		t.Errorf("%d after %d bytes", res.StatusCode, sent)
	}
	g.Control("POST", "/v1/grants", bytes.Repeat([]byte(" "), 1<<20+1)).Refused(abi.CodePayloadTooLarge)
}

// together runs n functions at once and returns their answers.
func together(n int, f func(int) servertest.Response) []servertest.Response {
	out := make([]servertest.Response, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = f(i) })
	}
	wg.Wait()
	return out
}

// PF-I3, PF-C8: the same bytes twenty times at once are one object, made once.
func TestUploadSameBytesAtOnce(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	module := w.Echo(w.Manifest("same", w.Provide("test:same.do@1", "run", abi.ReachOwner)))
	count := map[int]int{}
	for _, r := range together(20, func(int) servertest.Response { return g.Upload(module) }) {
		count[r.Status]++
	}
	if diff := cmp.Diff(map[int]int{201: 1, 200: 19}, count); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	for _, dir := range []string{"modules", "cache"} {
		if files := filesBelow(t, filepath.Join(g.Dir, dir)); len(files) != 1 {
			t.Errorf("%s: %v", dir, files)
		}
	}
	g.Grant("user:alice", "test:same.do@1", "sandbox")
	g.Open("user:alice", "sandbox", nil).Invoke("test:same.do@1", map[string]int{"n": 1}).Want(200)
}

// PF-A16, PF-I2: of biomes that claim one capability at the same time the first stays, and
// nothing of the others is kept.
func TestUploadSameRefAtOnce(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	won := ""
	for i, r := range together(6, func(i int) servertest.Response {
		return g.Upload(w.Echo(w.Manifest(fmt.Sprintf("claim-%d", i), w.Provide("test:claimed.do@1", "run", abi.ReachOwner))))
	}) {
		switch {
		case r.Status == 201 && won == "":
			won = fmt.Sprintf("claim-%d", i)
		default:
			r.Refused(abi.CodeCapabilityTaken)
		}
	}
	var list struct{ Items []struct{ Name string } }
	g.Control("GET", "/v1/biomes", nil).Want(200).JSON(&list)
	if won == "" || len(list.Items) != 1 || list.Items[0].Name != won {
		t.Errorf("%s won, there are %v", won, list.Items)
	}
	for _, dir := range []string{"modules", "cache"} {
		if files := filesBelow(t, filepath.Join(g.Dir, dir)); len(files) != 1 {
			t.Errorf("%s: %v", dir, files)
		}
	}
}

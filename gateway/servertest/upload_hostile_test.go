package servertest_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// kept is everything of a gateway that an upload could change.
func kept(t testing.TB, g *servertest.Gateway) map[string]any {
	t.Helper()
	metrics := string(g.Do("GET", g.Ops+"/metrics", "", nil).Want(200).Body)
	i := strings.Index(metrics, "\necotone_policy_generation ")
	if i < 0 {
		t.Fatalf("no generation in %s", metrics)
	}
	generation, _, _ := strings.Cut(metrics[i+1:], "\n")
	return map[string]any{
		"modules": filesBelow(t, filepath.Join(g.Dir, "modules")), "cache": filesBelow(t, filepath.Join(g.Dir, "cache")),
		"biomes": string(g.Control("GET", "/v1/biomes", nil).Want(200).Body), "policy": generation,
	}
}

// uploadProblem is one reason why an upload was refused.
type uploadProblem struct {
	Code    abi.Code
	Offset  *int
	Pointer string
	Message string
}

// problems decodes what a refused upload lists.
func problems(t testing.TB, r servertest.Response) []uploadProblem {
	t.Helper()
	var p struct{ Problems []uploadProblem }
	r.JSON(&p)
	return p.Problems
}

// Every hostile module of the upload and probe stages is refused with its code, all problems
// and their offsets, soon; nothing of it is kept; the refusal is recorded; the server serves on.
// PF-I2, PF-B13
func TestUploadHostile(t *testing.T) {
	g := servertest.Start(t)
	good := w.Echo(w.Manifest("good", w.Provide("test:good.do@1", "run", abi.ReachOwner)))
	g.Upload(good).Want(201)
	before := kept(t, g)
	rows := append(hostile.At(hostile.Upload), hostile.At(hostile.Probe)...)
	for _, m := range rows {
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			r := g.Upload(m.Bytes())
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("refusing took %v", took)
			}
			if m.Want == abi.CodePayloadTooLarge || r.Code() == abi.CodePayloadTooLarge {
				r.Refused(abi.CodePayloadTooLarge)
			} else {
				r.Refused(abi.CodeModuleRefused)
				found := false
				for _, p := range problems(t, r) {
					found = found || p.Code == m.Want
					if p.Offset == nil || *p.Offset < 0 || p.Message == "" {
						t.Errorf("a problem without its place: %+v", p)
					}
				}
				if !found {
					t.Errorf("no %s in %s", m.Want, r.Body)
				}
			}
			row := rowOfRefusal(t, g, r)
			if row["refused"].(map[string]any)["code"] != string(r.Code()) {
				t.Errorf("the row says %v", row)
			}
		})
	}
	if diff := cmp.Diff(before, kept(t, g)); diff != "" {
		t.Errorf("something was kept (-before +after):\n%s", diff)
	}
	if n := g.Server.Started(); n != 0 {
		t.Errorf("%d guests started", n)
	}
	g.Upload(good).Want(200)
}

// Manifests of which one member is wrong are refused with a pointer to it, each with all its
// problems. X3, X4, X8, X29, X57, X58, PF-H3, PF-H10
func TestUploadManifests(t *testing.T) {
	g := servertest.Start(t)
	base := w.MustJSON(w.Manifest("wrong", w.Provide("test:wrong.do@1", "run", abi.ReachOwner)))
	before := kept(t, g)
	long := strings.Repeat("x", 2000)
	bad := []any{nil, true, -1, 1e99, "", "x\x00y", "\u202ex", " ", long, []any{}, map[string]any{}, "environment:org"}
	type place struct {
		pointer string
		valid   func(any) bool
	}
	isText := func(most int) func(any) bool {
		return func(v any) bool {
			s, ok := v.(string)
			return ok && s != "" && len(s) <= most && s != "x\x00y" && s != "\u202ex"
		}
	}
	never := func(any) bool { return false }
	places := []place{
		{"/name", never},
		{"/version", never},
		{"/abi", never},
		{"/provides", never},
		{"/freeze", never},
		{"/environments", never},
		{"/publisher", never},
		{"/provides/0/ref", never},
		{"/provides/0/export", isText(abi.MaxExportBytes)}, // a text is looked for among the exports
		{"/provides/0/title", isText(abi.MaxTitle)},
		{"/provides/0/summary", isText(abi.MaxSummary)},
		{"/provides/0/inputSchema", func(v any) bool { _, ok := v.(map[string]any); return ok || v == true }},
		{"/provides/0/outputSchema", func(v any) bool { _, ok := v.(map[string]any); return ok || v == true }},
		{"/provides/0/riskTier", never},
		{"/provides/0/reach", never},
		{"/provides/0/outputClassification", never},
		{"/provides/0/environment", never},
		{"/provides/0/grants", never},
	}
	n := 0
	for _, pl := range places {
		for i, v := range bad {
			if pl.valid(v) || (pl.pointer == "/freeze" && v == "") {
				continue
			}
			var doc map[string]any
			if err := json.Unmarshal(base, &doc); err != nil {
				t.Fatal(err)
			}
			at := doc
			name := strings.TrimPrefix(pl.pointer, "/")
			if rest, inner := strings.CutPrefix(pl.pointer, "/provides/0/"); inner {
				at, name = doc["provides"].([]any)[0].(map[string]any), rest
			}
			at[name] = v
			b := w.New()
			b.Capability("run")
			r := g.Upload(b.Memory(1).ExportMemory().Manifest(w.MustJSON(doc)).Bytes())
			id := fmt.Sprintf("%s = %d %.20v", pl.pointer, i, v)
			if r.Status != 422 {
				t.Errorf("%s: %d %.300s", id, r.Status, r.Body)
				continue
			}
			n++
			r.Refused(abi.CodeModuleRefused)
			list := problems(t, r)
			if !slices.ContainsFunc(list, func(p uploadProblem) bool {
				return strings.HasPrefix(p.Pointer, pl.pointer)
			}) {
				t.Errorf("%s: no pointer to it in %.600s", id, r.Body)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d manifests were tried", n)
	}
	if diff := cmp.Diff(before, kept(t, g)); diff != "" {
		t.Errorf("something was kept (-before +after):\n%s", diff)
	}
}

package servertest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// plugOf makes a call of the bypass suite as an Extism plug-in makes it; false for what its interface
// cannot ask for: files, secrets, children, the audit.
func plugOf(h *attempt) (plugged, bool) {
	if len(h.steps) != 1 {
		return plugged{}, false
	}
	s := h.steps[0]
	p := plugged{ref: strings.Replace(h.capability(), "target:", "plug:", 1), reach: max(h.reach, abi.ReachOwner)}
	switch s.call {
	case "http_fetch":
		var request struct {
			Method, URL string
			Headers     map[string]string
			Secret      string
		}
		if json.Unmarshal([]byte(s.args[0].(string)), &request) != nil || request.Secret != "" {
			return p, false
		}
		document, _ := json.Marshal(map[string]any{"url": request.URL, "method": request.Method, "headers": request.Headers})
		p.body = func(p *plug) {
			p.text(0, string(document)).call("http_request", w.LocalGet(0), w.I64Const(0)).into(1).output(1)
		}
	case "kv_get":
		p.body = func(p *plug) { p.text(0, s.args[0].(string)).call("var_get", w.LocalGet(0)).into(1).output(1) }
	case "kv_put":
		p.body = func(p *plug) {
			p.text(0, s.args[0].(string)).text(1, s.args[1].(string)).call("var_set", w.LocalGet(0), w.LocalGet(1))
		}
	default:
		return p, false
	}
	return p, true
}

// absent are refusals that the interface can say: the answer is an empty one, and the receipt has the code.
var absent = map[abi.Code]bool{abi.CodeKeyNotFound: true}

// Promise 7: the hostile calls of the suite, made by an Extism plug-in, are refused as a biome's are: with
// the same code, on the receipt and in the row, and nothing outside changes.
func TestBypassExtism(t *testing.T) {
	t.Parallel()
	world := newBypass(t)
	g := world.g
	calls := atTheBoundary(world)
	var all []plugged
	made := map[string]*attempt{}
	for i := range calls {
		if calls[i].name == "no-key" { // a variable without a name is a key all the same: the prefix
			calls[i].want = abi.CodeKeyNotFound
		}
		if p, ok := plugOf(&calls[i]); ok {
			all, made[p.ref] = append(all, p), &calls[i]
		}
	}
	if len(all) < 25 {
		t.Fatalf("only %d of %d calls are made", len(all), len(calls))
	}
	g.Upload(plugin("plug", []string{"http_request", "var_get", "var_set"}, func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	}, all...)).Want(201)
	g.Install("plug", []string{"project"}, map[string]any{"endpoints": []string{"origin"}}).Want(200)
	for _, p := range all {
		h := made[p.ref]
		g.Grant("user:alice", p.ref, "project", h.globs...)
		t.Run(h.name, func(t *testing.T) {
			r := world.sessions[h.session()].Invoke(p.ref, "")
			switch {
			case h.want == "" || absent[h.want]:
				r.Want(200)
			default:
				r.Refused(h.want)
			}
			at := rowOf(g, r)
			if at.Decision == nil || at.Decision.Verdict != "allow" || at.Ended == nil {
				t.Fatalf("the gate refuses it: %s", at.Raw)
			}
			if code, ok := at.lineCode(h.call); !ok || code != h.want {
				t.Errorf("the receipt says %q of %s: %s", code, h.call, at.Raw)
			}
			want := h.want
			if absent[want] {
				want = ""
			}
			if at.Ended.Code != want {
				t.Errorf("the row ends with %q", at.Ended.Code)
			}
			for _, canary := range []string{g.Operator, bypassSecret, bypassKey, g.Dir} {
				if strings.Contains(string(r.Body), canary) {
					t.Errorf("the answer holds %.8s…", canary)
				}
			}
		})
	}
	if n := world.refused.Load(); n != 0 || world.allowed.Load() == 0 {
		t.Errorf("%d requests went where no rule leads, %d where one does", n, world.allowed.Load())
	}
}

// rowOf is the row of an answer, whatever it is.
func rowOf(g *servertest.Gateway, r servertest.Response) auditRow {
	g.T.Helper()
	if r.Status == 200 {
		return row(g, r)
	}
	return rowByID(g, auditOf(r))
}

// Hostile addresses and handles for every function of the interface, by a plug-in over the real server: an
// answer or a code of the catalogue each, and the gateway goes on.
func TestHostileExtism(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	hostile := []int64{0, 64, 77, 1<<20 - 7, 1 << 32, math.MinInt64, -1}
	var all []plugged
	var imports []string
	for i := range abi.ExtismFunctions() {
		fn := &abi.ExtismFunctions()[i]
		imports = append(imports, fn.Name)
		for n, a := range hostile {
			if len(fn.Params) == 0 && n > 0 {
				break
			}
			all = append(all, plugged{
				ref: fmt.Sprintf("hostile:%s.n%d@1", strings.ReplaceAll(fn.Name, "_", "-"), n), reach: abi.ReachIntegration,
				body: func(p *plug) {
					args := []byte{}
					for k, t := range fn.Params {
						v := a - int64(k)
						if t == abi.I32 {
							args = append(args, w.I32Const(int32(v))...)
						} else {
							args = append(args, w.I64Const(v)...)
						}
					}
					p.call(fn.Name, args)
					if fn.Result != 0 {
						p.add(w.Op(opDrop))
					}
				},
			})
		}
	}
	s := g.Open("user:alice", "project", nil)
	may := map[abi.Code]bool{abi.CodeGuestTrap: true, abi.CodeInvalidJSON: true, abi.CodeKeyInvalid: true, abi.CodeMemoryLimit: true, abi.CodeOutputInvalid: true, abi.CodeGuestError: true}
	for n := 0; n < len(all); n += most {
		name := fmt.Sprintf("hostile%d", n)
		part := all[n:min(n+most, len(all))]
		admit(g, name, plugin(name, imports, nil, part...), []string{"project"}, nil)
		for _, p := range part {
			if r := s.Invoke(p.ref, "input"); r.Status != 200 && !may[r.Code()] {
				t.Errorf("%s: %d %s", p.ref, r.Status, r.Body)
			} else if r.Status == 200 {
				row(g, r)
			}
		}
	}
}

package servertest_test

import (
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func TestMain(m *testing.M) { servertest.MainOfAllCodes(m) }

// threeReaches uploads one biome whose capabilities differ in their declared reach, and lets
// user:alice do everything with it everywhere.
func threeReaches(t *testing.T, g *servertest.Gateway) {
	t.Helper()
	var provides []abi.Descriptor
	for _, r := range abi.Reaches() {
		provides = append(provides, wasmtest.Provide("test:"+r.String()+".do@1", r.String(), r))
	}
	g.Upload(wasmtest.Echo(wasmtest.Manifest("three", provides...))).Want(201)
	var all []string
	for _, e := range environment.BuiltIns() {
		if !e.Waives {
			all = append(all, e.Slug)
		}
	}
	g.Install("three", all, nil).Want(200)
	for _, slug := range all {
		for _, r := range abi.Reaches() {
			g.Grant("user:alice", "test:"+r.String()+".do@1", slug)
		}
	}
}

// open gives a new session in any of the nine.
func open(g *servertest.Gateway, e environment.Environment) *servertest.Session {
	g.T.Helper()
	if e.Waives {
		return g.Open("user:alice", e.Slug, map[string]any{"space": "dev"})
	}
	return g.Open("user:alice", e.Slug, nil)
}

// X9, X10: nine environments and three reaches; a call is allowed exactly when its declared
// reach is within the environment's ceiling, and a refused one runs no instruction.
func TestReachMatrix(t *testing.T) {
	g := servertest.Start(t, servertest.Dev)
	threeReaches(t, g)
	allowed := 0
	for _, e := range environment.BuiltIns() {
		s := open(g, e)
		for _, r := range abi.Reaches() {
			t.Run(e.Slug+"/"+r.String(), func(t *testing.T) {
				started := g.Server.Started()
				res := s.Invoke("test:"+r.String()+".do@1", map[string]int{"n": 1})
				if r.Within(e.Reach) {
					allowed++
					res.Want(200)
					return
				}
				res.Refused(abi.CodeReachCeiling)
				if g.Server.Started() != started {
					t.Error("a refused invocation started a guest")
				}
			})
		}
	}
	if allowed != 18 {
		t.Errorf("%d of 27 were allowed, not 18", allowed)
	}
}

// X18, X19, X20: nine environments and five classifications under an organisation's override:
// allowed exactly up to the override, and the built-in's own row is unchanged.
func TestClassificationMatrix(t *testing.T) {
	g := servertest.Start(t, servertest.Dev)
	threeReaches(t, g)
	caps := abi.Classifications()
	for i, e := range environment.BuiltIns() {
		limit := caps[i%len(caps)]
		g.Control("PUT", "/v1/orgs/default/overrides/"+e.Slug, map[string]string{"maxDataClassification": limit.String()}, "If-None-Match", "*").Want(200)
		for _, c := range caps {
			t.Run(fmt.Sprintf("%s/%s/%s", e.Slug, limit, c), func(t *testing.T) {
				// A session of its own: what it is given raises its mark.
				s := open(g, e)
				res := s.Invoke("test:owner.do@1", map[string]int{"n": 1}, "Ecotone-Classification", c.String())
				if c.FlowsTo(limit) {
					res.Want(200)
					if got := res.Header.Get("Ecotone-Classification"); got != c.String() {
						t.Errorf("the answer is labelled %s", got)
					}
					return
				}
				res.Refused(abi.CodeClassificationCeiling)
			})
		}
		var shown struct {
			MaxData abi.Classification `json:"maxDataClassification"`
		}
		g.Control("GET", "/v1/environments/"+e.Slug, nil).Want(200).JSON(&shown)
		if shown.MaxData != abi.Regulated {
			t.Errorf("%s itself shows %s", e.Slug, shown.MaxData)
		}
	}
}

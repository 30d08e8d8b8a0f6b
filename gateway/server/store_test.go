package server_test

import (
	"net/http"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// M58: the store is gone from below a working server. It lives and says that it is not ready;
// what needs the store fails with a code, changes nothing and is on record; what was decided in
// memory before does not widen.
func TestStoreTakenAway(t *testing.T) {
	g := servertest.Start(t)
	b := wasmtest.New()
	put, output := b.Host("kv_put"), b.Host("output")
	const i64LtS = 0x53
	b.Capability("put",
		wasmtest.I32Const(0), wasmtest.I32Const(3), wasmtest.I32Const(3), wasmtest.I32Const(5), wasmtest.Call(put), wasmtest.I64Const(0), wasmtest.Op(i64LtS),
		wasmtest.If(wasmtest.I32Const(1), wasmtest.Op(wasmtest.OpReturn)),
		wasmtest.I32Const(3), wasmtest.I32Const(1), wasmtest.Call(output), wasmtest.Op(wasmtest.OpI32WrapI64))
	b.Data(0, []byte("key12345")).Memory(1).ExportMemory()
	b.Manifest(wasmtest.Manifest("keep", wasmtest.Provide("t:key.put@1", "put", abi.ReachOwner)))
	g.Upload(b.Bytes()).Want(201)
	g.Install("keep", []string{"project"}, nil).Want(200)
	grant := g.Grant("user:alice", "t:key.put@1", "project")
	s := g.Open("user:alice", "project", nil)
	s.Invoke("t:key.put@1", map[string]any{}).Want(200)

	if err := g.Server.CloseStore(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if r := s.Invoke("t:key.put@1", map[string]any{}); r.Status == http.StatusOK || r.Code() == "" {
			t.Errorf("a key was put into a closed store: %d %s", r.Status, r.Body)
		} else if row := g.Row(r.Header.Get("Ecotone-Invocation")); row["ended"] == nil {
			t.Errorf("the failure is not on record: %v", row)
		}
	}
	for _, change := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/grants", map[string]any{"subject": "user:bob", "capability": "t:key.put@1", "environment": "environment:project"}},
		{"DELETE", "/v1/grants/" + grant, nil},
		{"POST", "/v1/sessions", map[string]any{"subject": "user:bob", "environment": "environment:project"}},
	} {
		if r := g.Control(change.method, change.path, change.body); r.Status < 500 || r.Code() == "" {
			t.Errorf("%s %s: %d %s", change.method, change.path, r.Status, r.Body)
		}
	}
	var ready struct {
		Checks map[string]string `json:"checks"`
	}
	g.Do("GET", g.Ops+"/readyz", "", nil).Want(http.StatusServiceUnavailable).JSON(&ready)
	if ready.Checks["store"] == "ok" || ready.Checks["audit"] != "ok" {
		t.Errorf("/readyz says %v", ready.Checks)
	}
	g.Do("GET", g.Ops+"/livez", "", nil).Want(http.StatusOK)
	// What is listed is what is stored: who asks hears that it cannot be read, not that it is not there.
	if r := g.Control("GET", "/v1/grants?subject=user:bob", nil).Want(http.StatusServiceUnavailable); r.Code() != abi.CodeNotReady {
		t.Errorf("%s", r.Body)
	}
}

package servertest_test

import (
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// A server without memory to keep anything loads each module when it is invoked, and answers.
func TestNoMemoryToKeepAnything(t *testing.T) {
	g := servertest.Start(t, func(o *server.Options) { o.MemoryBudget = 1 })
	var refs []string
	for i := range 3 {
		name := fmt.Sprintf("biome-%d", i)
		ref := fmt.Sprintf("test:%s.do@1", name)
		g.Upload(wasmtest.Echo(wasmtest.Manifest(name, wasmtest.Provide(ref, "run", abi.ReachOwner)))).Want(201)
		g.Install(name, []string{"project"}, nil).Want(200)
		g.Grant("user:alice", ref, "project")
		refs = append(refs, ref)
	}
	s := g.Open("user:alice", "project", nil)
	for n := range 12 {
		s.Invoke(refs[n%len(refs)], map[string]int{"n": n}).Want(200)
	}
}

package servertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// PF-D22: nothing that a guest or a caller names becomes the name of a metric: there are as many as
// there were.
func TestMetricsAreFew(t *testing.T) {
	g := servertest.Start(t)
	names := func() (names []string) {
		for line := range strings.Lines(string(g.Do("GET", g.Ops+"/metrics", "", nil).Want(200).Body)) {
			if !strings.HasPrefix(line, "#") {
				names = append(names, strings.Fields(line)[0])
			}
		}
		return names
	}
	before := names()
	for i := range 5 {
		name := fmt.Sprintf("biome-%d", i)
		ref := fmt.Sprintf("test:%s.do@1", name)
		g.Upload(wasmtest.Echo(wasmtest.Manifest(name, wasmtest.Provide(ref, "run", abi.ReachOwner)))).Want(201)
		g.Install(name, []string{"project"}, nil).Want(200)
		subject := fmt.Sprintf("user:person-%d", i)
		g.Grant(subject, ref, "project")
		s := g.Open(subject, "project", nil)
		s.Invoke(ref, map[string]string{"metric": name}).Want(200)
		for n := range 20 {
			s.Invoke(fmt.Sprintf("test:made.up%d@1", n), map[string]int{})
		}
	}
	if after := names(); len(before) == 0 || strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("metrics %v, then %v", before, after)
	}
}

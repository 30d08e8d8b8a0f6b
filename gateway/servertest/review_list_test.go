package servertest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// X13: a catalogue that hangs delays a listing once, not once for each capability; in a refining
// environment what it cannot say is listed all the same.
func TestAListingWaitsForTheCatalogueOnce(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	const many = 128
	for _, name := range []string{"few", "more"} {
		var provides []abi.Descriptor
		for i := range many / 2 {
			provides = append(provides, w.Provide(fmt.Sprintf("test:%s.n%d@1", name, i), fmt.Sprintf("n%d", i), abi.ReachOwner))
		}
		g.Upload(w.Echo(w.Manifest(name, provides...))).Want(201)
	}
	g.Catalogue.Delay(time.Hour)
	begin := time.Now()
	var list struct {
		Items []any `json:"items"`
	}
	g.Do("GET", g.Invoke+"/v1/capabilities", g.Dev, nil).Want(200).JSON(&list)
	g.Catalogue.Start()
	if len(list.Items) != many || time.Since(begin) > 20*time.Second {
		t.Errorf("%d capabilities after %s", len(list.Items), time.Since(begin))
	}
}

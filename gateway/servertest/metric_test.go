package servertest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/listen/listentest"
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

// docs/grafana.json asks for metrics and labels that exist, and docs/operations.md speaks of none that do not.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(t.TempDir())
	g := servertest.Start(t, secured(cert, key))
	g.Client = trusting(t, a, true)
	there := map[string]bool{"ecotone_build_info": true}
	for line := range strings.Lines(string(g.Do("GET", g.Ops+"/metrics", "", nil).Want(200).Body)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			there[name] = true
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Query string } }
	}
	raw, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\b(?:ecotone|go|process)_[a-z_]+\b`)
	exists := func(where, text string) (n int) {
		for _, name := range metric.FindAllString(text, -1) {
			n++
			if base := strings.TrimSuffix(name, "_bucket"); !there[base] {
				t.Errorf("%s asks for %s, which is no metric", where, name)
			}
		}
		return n
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			if exists(p.Title, target.Expr) == 0 {
				t.Errorf("%s asks for nothing: %s", p.Title, target.Expr)
			}
			for _, code := range regexp.MustCompile(`code=~?"([A-Z_|]+)"`).FindAllStringSubmatch(target.Expr, -1) {
				for _, c := range strings.Split(code[1], "|") {
					if _, known := abi.Code(c).Info(); !known {
						t.Errorf("%s asks for the code %s", p.Title, c)
					}
				}
			}
		}
	}
	for _, v := range dashboard.Templating.List {
		exists("a variable", v.Query)
	}
	if len(dashboard.Panels) < 15 {
		t.Errorf("%d panels", len(dashboard.Panels))
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if exists("docs/operations.md", string(page)) < 5 {
		t.Error("docs/operations.md speaks of no metrics")
	}
}

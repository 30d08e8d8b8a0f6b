package files_test

import (
	"os"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// S17, S5: versions change with what is there, whoever changes it; what is above the ceiling looks absent.
func TestVersions(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	made := g.ok(g.create("docs/a.txt", "one"))
	workspace := g.spec.Workspace
	look := func(ceiling abi.Classification, paths ...string) (map[string]string, abi.Classification) {
		t.Helper()
		got, label, err := b.svc.Versions(t.Context(), workspace, ceiling, paths)
		must(t, err)
		return got, label
	}
	got, label := look(abi.Regulated, "docs/a.txt", "./docs/x/../a.txt", "docs", "b.txt", "../x", "a\x00b", "/etc/passwd", "docs/a.txt/c")
	if len(got) != 4 || got["docs/a.txt"] != made.Meta.Version || got["docs/a.txt"] == "" || got["docs"] != "" || got["b.txt"] != "" || label != abi.Public {
		t.Errorf("%v, %s", got, label)
	}
	must(t, os.WriteFile(b.host("docs/a.txt"), []byte("two"), 0o600)) // behind the gateway's back
	if now, label := look(abi.Regulated, "docs/a.txt"); now["docs/a.txt"] == got["docs/a.txt"] || now["docs/a.txt"] == "" || label != abi.Regulated {
		t.Errorf("%v, %s", now, label)
	}
	if now, label := look(abi.Secret, "docs/a.txt"); now["docs/a.txt"] != "" || label != abi.Public {
		t.Errorf("below the ceiling: %v, %s", now, label)
	}
	if now, _, err := b.svc.Versions(t.Context(), "unmade", abi.Regulated, []string{"a"}); err != nil || now["a"] != "" || len(now) != 1 {
		t.Errorf("%v %v", now, err)
	}
}

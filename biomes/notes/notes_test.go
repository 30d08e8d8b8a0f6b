package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/biomes/internal/biometest"
	"github.com/ecotone-dev/ecotone/guest"
)

func start(t *testing.T) *biometest.Biome {
	return biometest.New(t, map[string]func() int32{"put": put, "get": get, "list": list, "delete": deleteNote})
}

const (
	capPut    = "notes:note.put@1"
	capGet    = "notes:note.get@1"
	capList   = "notes:note.list@1"
	capDelete = "notes:note.delete@1"
)

func TestNotes(t *testing.T) {
	b := start(t)
	b.Refused(capGet, id{"a"}, "NOTE_NOT_FOUND")
	b.Refused(capDelete, id{"a"}, "NOTE_NOT_FOUND")
	text := "milk, <b>& \u2028 \"bread\"\n"
	biometest.Into[id](b, capPut, note{"a", text})
	if got := biometest.Into[note](b, capGet, id{"a"}); got != (note{"a", text}) {
		t.Errorf("got %+v", got)
	}
	biometest.Into[id](b, capPut, note{"a", ""})
	if got := biometest.Into[note](b, capGet, id{"a"}); got.Text != "" {
		t.Errorf("got %+v", got)
	}
	biometest.Into[id](b, capDelete, id{"a"})
	b.Refused(capGet, id{"a"}, "NOTE_NOT_FOUND")
	if len(b.Host.KV) != 0 {
		t.Errorf("keys are left: %v", b.Host.KV)
	}
}

func TestListPages(t *testing.T) {
	b := start(t)
	b.Host.KV["other/key"] = nil // not a note
	for _, n := range []string{"b", "a", "c1", "c2", "d"} {
		biometest.Into[id](b, capPut, note{n, n})
	}
	var all []string
	in := listIn{Limit: 2}
	for {
		got := biometest.Into[listOut](b, capList, in)
		all = append(all, got.IDs...)
		if !got.More {
			break
		}
		in.After = got.IDs[len(got.IDs)-1]
	}
	if diff := cmp.Diff([]string{"a", "b", "c1", "c2", "d"}, all); diff != "" {
		t.Error(diff)
	}
	if got := biometest.Into[listOut](b, capList, listIn{Prefix: "c"}); !cmp.Equal(got.IDs, []string{"c1", "c2"}) {
		t.Errorf("with a prefix: %v", got.IDs)
	}
	if got := biometest.Into[listOut](b, capList, listIn{Prefix: "none"}); got.IDs == nil || len(got.IDs) != 0 {
		t.Errorf("nothing lists as %v", got.IDs)
	}
}

func TestIDs(t *testing.T) {
	b := start(t)
	for _, bad := range []string{``, `.hidden`, `..`, `a/b`, `a b`, "a\\u0000", `é`, strings.Repeat("x", 129)} {
		if o := b.Unchecked(capPut, `{"id":"`+bad+`","text":"t"}`); o.Code() != "ID_INVALID" {
			t.Errorf("%q: %v", bad, o.Failure)
		}
	}
	if len(b.Host.KV) != 0 {
		t.Errorf("something was stored: %v", b.Host.KV)
	}
	biometest.Into[id](b, capPut, note{strings.Repeat("x", 128), "t"})
}

// A refusal is passed on by the host's name, and the biome goes on.
func TestRefusals(t *testing.T) { // PF-H13
	b := start(t)
	b.Host.Deny["kv_put"] = guest.EDENIED
	b.Refused(capPut, note{"a", "t"}, "EDENIED")
	b.Host.Deny["kv_put"] = guest.EQUOTA
	b.Refused(capPut, note{"a", "t"}, "EQUOTA")
	delete(b.Host.Deny, "kv_put")
	b.Refused(capPut, note{"a", strings.Repeat("x", 300<<10)}, "ETOOBIG")
	biometest.Into[id](b, capPut, note{"a", "t"})
}

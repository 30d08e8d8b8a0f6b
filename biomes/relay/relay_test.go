package main

import (
	"errors"
	"testing"

	"github.com/ecotone-dev/ecotone/biomes/internal/biometest"
	"github.com/ecotone-dev/ecotone/guest"
)

const capInvoke = "relay:capability.invoke@1"

func start(t *testing.T) *biometest.Biome {
	return biometest.New(t, map[string]func() int32{"invoke": invoke})
}

func TestRelay(t *testing.T) {
	b := start(t)
	var seen string
	b.Host.Children["notes:note.get@1"] = func(input []byte) ([]byte, error) {
		seen = string(input)
		return []byte(`{"id":"a","text":"milk"}`), nil
	}
	got := biometest.Into[out](b, capInvoke, `{"ref":"notes:note.get@1","input":{"id":"a"}}`)
	if !got.OK || string(got.Output) != `{"id":"a","text":"milk"}` || got.Error != nil || seen != `{"id":"a"}` {
		t.Errorf("answered %+v, the child saw %s", got, seen)
	}
	biometest.Into[out](b, capInvoke, `{"ref":"notes:note.get@1"}`)
	if seen != `{}` {
		t.Errorf("without an input the child saw %s", seen)
	}
}

// What the host refuses, and what the child says, is part of the answer.
func TestRelayRefused(t *testing.T) { // PF-H13
	b := start(t)
	got := biometest.Into[out](b, capInvoke, `{"ref":"admin:all.delete@1"}`)
	if got.OK || got.Error.Errno != "EDENIED" || got.Error.Message == "" || got.Output != nil {
		t.Errorf("answered %+v", got.Error)
	}
	b.Host.Children["notes:note.get@1"] = func([]byte) ([]byte, error) { return nil, errors.New("no such note") }
	got = biometest.Into[out](b, capInvoke, `{"ref":"notes:note.get@1"}`)
	if got.OK || *got.Error != (refusal{Errno: "ECHILD", Code: "GUEST_ERROR", Message: "no such note"}) {
		t.Errorf("answered %+v", got.Error)
	}
	for _, e := range []guest.Errno{guest.ENOENT, guest.EQUOTA, guest.ETIMEOUT, guest.EUNAVAIL, guest.ETOOBIG} {
		b.Host.Deny["capability_invoke"] = e
		if got := biometest.Into[out](b, capInvoke, `{"ref":"notes:note.get@1"}`); got.OK || got.Error.Errno != e.String() {
			t.Errorf("%s: answered %+v", e, got.Error)
		}
	}
}

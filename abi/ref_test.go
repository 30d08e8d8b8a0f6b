package abi_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	. "github.com/ecotone-dev/ecotone/abi"
)

var badRefs = []string{
	"", "kb", "kb:", ":page@1", "kb:page", "kb:page@", "kb:page.read@", "kb:page.read@one", "kb:page.read@-1",
	"kb:page.read@01", "kb:page.read@1.0", "kb:page.read@1 ", " kb:page.read@1", "kb:page.read@1\n", "kb:page.read@1\x00",
	"Kb:page.read@1", "kb:Page.read@1", "kb:page.Read@1", "1kb:page.read@1", "kb:1page@1", "kb:page..read@1", "kb:.read@1",
	"kb:page.@1", "kb:page.1@1", "kb::page@1", "kb:page:read@1", "kb:page.read@1@2", "kb/page.read@1", "kb:page/read@1",
	"kb:../read@1", "kb:page_read@1", "kb:påge@1", "kb:page.read@١", "kb:page.read@1000000000",
	"a:" + strings.Repeat("b", 128) + "@1",
}

func TestCapabilityRef(t *testing.T) { // X57
	for _, s := range []string{
		"kb:page.read@1", "kb:page@0", "a:b@9", "web-2:page-x.fetch.all@12", "ws:file.read@999999999",
		"a:" + strings.Repeat("b", MaxRefBytes-4) + "@1",
	} {
		got, err := ParseCapabilityRef(s)
		if err != nil || string(got) != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
		if domain, _, _ := strings.Cut(s, ":"); got.Domain() != domain {
			t.Errorf("%q: domain %q", s, got.Domain())
		}
	}
	for _, s := range badRefs {
		if got, err := ParseCapabilityRef(s); CodeOf(err) != CodeInvalidRequest || got != "" {
			t.Errorf("%q was accepted as %q (%v)", s, got, err)
		}
	}
}

func TestEnvironmentRef(t *testing.T) { // X3
	for _, slug := range []string{"system", "org", "trusted-dev", "project", "app", "session", "sandbox", "public", "store-review", "a", "x" + strings.Repeat("y", 62)} {
		got, err := ParseEnvironmentRef("environment:" + slug)
		if err != nil || got != MakeEnvironmentRef(slug) || got.Slug() != slug {
			t.Errorf("%s: %q, %v", slug, got, err)
		}
	}
	for _, s := range []string{
		"", "sandbox", "sandbox:", "environment", "environment:", "environment:Sandbox", "Environment:sandbox", "environment: sandbox",
		"environment:sandbox ", "environment:sandbox\n", "environment:sand_box", "environment:-a", "environment:a-", "environment:9",
		"environment:environment:sandbox", "environment:../sandbox", "environment:" + strings.Repeat("a", 64), "env:sandbox",
	} {
		if got, err := ParseEnvironmentRef(s); CodeOf(err) != CodeInvalidRequest || got != "" {
			t.Errorf("%q was accepted as %q (%v)", s, got, err)
		}
	}
}

func TestSubject(t *testing.T) {
	for _, s := range []string{"user:alice", "agent:a-1", "app:x.y_z@example", "biome:notes", "user:" + strings.Repeat("a", 128)} {
		got, err := ParseSubject(s)
		if err != nil || string(got.Kind())+":"+got.ID() != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "alice", "user:", "root:alice", "User:alice", "user:-a", "user:a b", "user:a\n", "user:a:b", "user:*", "user:" + strings.Repeat("a", 129)} {
		if got, err := ParseSubject(s); CodeOf(err) != CodeInvalidRequest || got != "" {
			t.Errorf("%q was accepted as %q (%v)", s, got, err)
		}
	}
}

func TestRefsDecodeStrictly(t *testing.T) {
	var doc struct {
		Ref         CapabilityRef  `json:"ref"`
		Environment EnvironmentRef `json:"environment"`
		Subject     Subject        `json:"subject"`
	}
	if err := DecodeStrict([]byte(`{"ref":"kb:page.read@1","environment":"environment:sandbox","subject":"user:a"}`), &doc); err != nil {
		t.Fatal(err)
	}
	for field, bad := range map[string]string{"ref": "kb:page", "environment": "sandbox", "subject": "root:a"} {
		err := DecodeStrict([]byte(`{"`+field+`":"`+bad+`"}`), &doc)
		if e := AsError(err); e == nil || e.Code != CodeInvalidRequest || e.Pointer != "/"+field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The canonical form: at most one spelling names one capability, and every accepted ref is
// within the grammar of X57.
func FuzzRef(f *testing.F) {
	for _, s := range badRefs {
		f.Add(s)
	}
	for _, s := range []string{"kb:page.read@1", "environment:sandbox", "user:alice", "a-b:c-d.e@0"} {
		f.Add(s)
	}
	x57 := regexp.MustCompile(`^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*@\d+$`)
	f.Fuzz(func(t *testing.T, s string) {
		if ref, err := ParseCapabilityRef(s); err == nil {
			if string(ref) != s || !x57.MatchString(s) || len(s) > MaxRefBytes {
				t.Errorf("%q was accepted", s)
			}
			b, _ := json.Marshal(ref)
			var back CapabilityRef
			if err := DecodeStrict(b, &back); err != nil || back != ref {
				t.Errorf("%q does not come back: %q, %v", s, back, err)
			}
		} else {
			presentable(t, err)
		}
		if ref, err := ParseEnvironmentRef(s); err == nil {
			if MakeEnvironmentRef(ref.Slug()) != ref || !ValidSlug(ref.Slug()) {
				t.Errorf("%q was accepted", s)
			}
		} else {
			presentable(t, err)
		}
		if sub, err := ParseSubject(s); err == nil {
			if strings.ContainsAny(s, " \n\t/*") || sub.ID() == "" {
				t.Errorf("%q was accepted", s)
			}
		} else {
			presentable(t, err)
		}
	})
}

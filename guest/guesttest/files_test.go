package guesttest

import (
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/guest"
)

func TestPaths(t *testing.T) {
	for in, want := range map[string]string{"a": "a", "./a": "a", "a/../b": "b", "a//b/": "a/b", ".": ".", "a/..": "."} {
		if got, e := clean(in); e != 0 || got != want {
			t.Errorf("%q is %q, %v", in, got, e)
		}
	}
	for _, in := range []string{"", "/", "/a", "..", "../a", "a/../../b", "a\x00", `a\b`, "\xff"} {
		if got, e := clean(in); e != guest.EINVAL {
			t.Errorf("%q is %q, %v", in, got, e)
		}
	}
}

func TestGlobs(t *testing.T) {
	names := []string{"a.go", "a.md", "src/a.go", "src/deep/b.go", "src/deep/c.txt"}
	for glob, want := range map[string][]string{
		"**":               names,
		"*":                {"a.go", "a.md"},
		"*.go":             {"a.go"},
		"**/*.go":          {"a.go", "src/a.go", "src/deep/b.go"},
		"src/**":           {"src/a.go", "src/deep/b.go", "src/deep/c.txt"},
		"src/*":            {"src/a.go"},
		"src/**/b.go":      {"src/deep/b.go"},
		"?.md":             {"a.md"},
		"src/deep/*.{go,}": {"src/deep/b.go"},
		"a.[gm]*":          {"a.go", "a.md"},
		"none":             nil,
	} {
		re, e := compileGlob(glob)
		if e != 0 {
			t.Errorf("%s: %v", glob, e)
			continue
		}
		var got []string
		for _, n := range names {
			if re.MatchString(n) {
				got = append(got, n)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s names %v, want %v", glob, got, want)
		}
	}
	for _, glob := range []string{"", "/a", `a\*`, "[", "{a"} {
		if _, e := compileGlob(glob); e != guest.EINVAL {
			t.Errorf("%q compiles", glob)
		}
	}
}

// Budgets hold for one run and begin anew with the next.
func TestBudgets(t *testing.T) {
	h := New(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.Limits.Set("randomBytes", 8))
	must(h.Limits.Set("httpRequests", 1))
	must(h.Limits.Set("children", 1))
	must(h.Limits.Set("keys", 1))
	must(h.Limits.Set("fileBytes", 3))
	h.HTTP = func(guest.Request) (guest.Response, error) { return guest.Response{Status: 200}, nil }
	h.Children["a:b@1"] = func([]byte) ([]byte, error) { return []byte("1"), nil }
	for range 2 {
		clear(h.KV)
		out := h.Run(func() int32 {
			for i := range 2 {
				want := []error{nil, guest.EQUOTA}[i]
				_, fetched := guest.Fetch(guest.Request{Method: "GET", URL: "https://a.example/"})
				_, child := guest.Invoke("a:b@1", nil)
				for what, got := range map[string]error{
					"random": guest.Random(make([]byte, 8)), "fetch": fetched, "child": child, "key": guest.KV.Put(fmt.Sprint(i), nil),
				} {
					if got != want {
						t.Errorf("%s, time %d: %v", what, i, got)
					}
				}
			}
			if _, err := guest.Files.Create("big", []byte("1234")); err != guest.ETOOBIG {
				t.Errorf("a file over its limit: %v", err)
			}
			return 0
		}, "{}")
		if out.Return != 0 || len(out.Calls) == 0 {
			t.Errorf("%+v", out)
		}
	}
	must(h.Limits.Set("hostCalls", 2))
	h.Run(func() int32 {
		guest.Now()
		guest.Now()
		if err := guest.Random(make([]byte, 1)); err != guest.EQUOTA {
			t.Errorf("past the host calls: %v", err)
		}
		return 0
	}, "{}")
}

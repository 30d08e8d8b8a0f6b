package abi

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// X57: the grammar as an expression, and what is written out of it, agree on everything that is near it.
func TestRefGrammar(t *testing.T) {
	grammar := regexp.MustCompile(`^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*@(0|[1-9][0-9]{0,8})$`)
	near := rapid.OneOf(
		rapid.StringMatching(`[a-z][a-z0-9-]{0,3}:[a-z][a-z0-9-]{0,3}(\.[a-z][a-z0-9-]{0,3}){0,2}@[0-9]{1,10}`),
		rapid.StringMatching(`[a-b0:.@-]{0,9}`),
		rapid.Custom(func(t *rapid.T) string { // one byte of a good one is another
			s := []byte(rapid.StringMatching(`[a-z][a-z0-9]:[a-z](\.[a-z]-?)?@[1-9]`).Draw(t, "good"))
			s[rapid.IntRange(0, len(s)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("aZ09:.@- \n\x00\xff")).Draw(t, "byte")
			return string(s)
		}),
	)
	good := 0
	rapid.Check(t, func(t *rapid.T) {
		s := near.Draw(t, "ref")
		if got, want := validRef(s), grammar.MatchString(s); got != want {
			t.Fatalf("%q: %v", s, got)
		} else if got {
			good++
		}
	})
	if good == 0 {
		t.Error("nothing good was drawn")
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = ParseCapabilityRef("kb:page.read@1") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

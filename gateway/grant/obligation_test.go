package grant

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// X44: every kind of the closed set comes to something that is enforced, is always so, or is refused.
func TestEveryObligation(t *testing.T) {
	url, err := egress.ParseURL("https://a.test/v1/x")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[ObligationKind]struct {
		in    Obligation
		code  abi.Code
		holds func(Obligations) bool
	}{
		ObligeAudit:          {holds: nothing},
		ObligeRedactSecrets:  {holds: nothing},
		ObligeApproval:       {holds: func(o Obligations) bool { return o.Approval }},
		ObligeDuration:       {in: Obligation{Seconds: 2}, holds: func(o Obligations) bool { return o.Duration == 2*time.Second }},
		ObligeClassification: {in: Obligation{Classification: abi.Internal}, holds: func(o Obligations) bool { return o.Clearance == abi.Internal }},
		ObligeEgress: {in: Obligation{Allow: []string{"https://a.test/**"}, Block: []string{"https://a.test/v1/**"}}, holds: func(o Obligations) bool {
			return len(o.Egress) == 1 && !o.Egress[0].Admits(url)
		}},
		ObligeRunner:    {code: abi.CodeUnsupportedRule},
		ObligeCost:      {code: abi.CodeUnsupportedRule},
		ObligeResidency: {code: abi.CodeUnsupportedRule},
	} {
		if _, known := obligationKinds[kind]; !known {
			t.Errorf("%s is not in the table", kind)
		}
		want.in.Kind = kind
		o, err := CompileObligations([]Obligation{want.in})
		if abi.CodeOf(err) != want.code || want.holds != nil && !want.holds(o) {
			t.Errorf("%s: %+v, %v", kind, o, err)
		}
	}
	if len(obligationKinds) != 9 {
		t.Errorf("the table has %d kinds, the test 9", len(obligationKinds))
	}
}

func nothing(o Obligations) bool { return o.Duration == 0 && o.Clearance == 0 && o.Egress == nil }

// X44, PF-B7: what is not known, not given, out of bounds or not of its kind is refused where it is.
func TestObligationsThatAreRefused(t *testing.T) {
	for in, want := range map[string]struct {
		code    abi.Code
		pointer string
	}{
		`{"kind":"max-durations-seconds","seconds":1}`: {abi.CodeInvalidRequest, "/obligations/1/kind"},
		`{"kind":""}`:                                                        {abi.CodeInvalidRequest, "/obligations/1/kind"},
		`{"kind":"Audit"}`:                                                   {abi.CodeInvalidRequest, "/obligations/1/kind"},
		`{"kind":"audit","seconds":1}`:                                       {abi.CodeInvalidRequest, "/obligations/1/seconds"},
		`{"kind":"max-duration-seconds"}`:                                    {abi.CodeInvalidRequest, "/obligations/1/seconds"},
		`{"kind":"max-duration-seconds","seconds":-1}`:                       {abi.CodeInvalidRequest, "/obligations/1/seconds"},
		`{"kind":"max-duration-seconds","seconds":601}`:                      {abi.CodeInvalidRequest, "/obligations/1/seconds"},
		`{"kind":"max-duration-seconds","seconds":1,"allow":[]}`:             {abi.CodeInvalidRequest, "/obligations/1/allow"},
		`{"kind":"restrict-output-classification"}`:                          {abi.CodeInvalidRequest, "/obligations/1/classification"},
		`{"kind":"egress-allowlist"}`:                                        {abi.CodeUnsupportedRule, "/obligations/1/allow"},
		`{"kind":"egress-allowlist","allow":[]}`:                             {abi.CodeUnsupportedRule, "/obligations/1/allow"},
		`{"kind":"egress-allowlist","block":["https://a.test/**"]}`:          {abi.CodeUnsupportedRule, "/obligations/1/allow"},
		`{"kind":"egress-allowlist","allow":["https://a.test/**","a.test"]}`: {abi.CodeUnsupportedRule, "/obligations/1/allow/1"},
	} {
		var list []Obligation
		if err := abi.DecodeStrict([]byte(`[{"kind":"audit"},`+in+`]`), &list); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		o, err := CompileObligations(list)
		if abi.CodeOf(err) != want.code || abi.AsError(err).Pointer != want.pointer || !nothing(o) {
			t.Errorf("%s: %v at %q", in, err, abi.AsError(err).Pointer)
		}
	}
	if _, err := CompileObligations(make([]Obligation, MaxObligations+1)); abi.CodeOf(err) != abi.CodeInvalidRequest {
		t.Errorf("too many: %v", err)
	}
}

// Obligations only restrict: more of them never give a longer time, a higher clearance or another URL.
func TestObligationsOnlyRestrict(t *testing.T) {
	one := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) Obligation {
			return Obligation{Kind: ObligeDuration, Seconds: rapid.Int64Range(1, MaxSeconds).Draw(t, "seconds")}
		}),
		rapid.Custom(func(t *rapid.T) Obligation {
			return Obligation{Kind: ObligeClassification, Classification: rapid.SampledFrom([]abi.Classification{abi.Public, abi.Internal, abi.Regulated}).Draw(t, "level")}
		}),
		rapid.Custom(func(t *rapid.T) Obligation {
			paths := rapid.SliceOfN(rapid.SampledFrom([]string{"https://a.test/**", "https://a.test/x", "https://*.a.test/**"}), 1, 3)
			return Obligation{Kind: ObligeEgress, Allow: paths.Draw(t, "allow"), Block: rapid.SliceOfN(rapid.Just("https://a.test/x"), 0, 1).Draw(t, "block")}
		}),
	)
	var urls []*egress.Target
	for _, s := range []string{"https://a.test/x", "https://a.test/y/z", "https://b.test/x"} {
		u, err := egress.ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, u)
	}
	admits := func(o Obligations, u *egress.Target) bool {
		for _, l := range o.Egress {
			if !l.Admits(u) {
				return false
			}
		}
		return true
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(one, 0, 4).Draw(t, "a"), rapid.SliceOfN(one, 0, 4).Draw(t, "b")
		oa, err := CompileObligations(a)
		if err != nil {
			t.Fatal(err)
		}
		ob, err := CompileObligations(b)
		if err != nil {
			t.Fatal(err)
		}
		together, err := CompileObligations(append(append([]Obligation{}, a...), b...))
		if err != nil {
			t.Fatal(err)
		}
		with := oa.With(ob)
		if with.Duration != together.Duration || with.Clearance != together.Clearance {
			t.Fatalf("%+v is not %+v", with, together)
		}
		for _, part := range []Obligations{oa, ob} {
			if part.Duration != 0 && (with.Duration == 0 || with.Duration > part.Duration) {
				t.Fatalf("%+v outlasts %+v", with, part)
			}
			if part.Clearance.Valid() && (!with.Clearance.Valid() || with.Clearance > part.Clearance) {
				t.Fatalf("%+v is cleared for more than %+v", with, part)
			}
			for _, u := range urls {
				if admits(with, u) && !admits(part, u) || admits(with, u) != admits(together, u) {
					t.Fatalf("%+v admits %+v", with, u)
				}
			}
		}
	})
}

// An obligation is written and read back as it was.
func TestObligationRoundTrip(t *testing.T) {
	in := []Obligation{{Kind: ObligeAudit}, {Kind: ObligeDuration, Seconds: 3}, {Kind: ObligeClassification, Classification: abi.Public}, {Kind: ObligeEgress, Allow: []string{"https://a.test/**"}}}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []Obligation
	if err := abi.DecodeStrict(raw, &out); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(out)
	if err != nil || string(again) != string(raw) {
		t.Errorf("%s became %s, %v", raw, again, err)
	}
}

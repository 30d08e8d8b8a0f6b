package audit

import (
	"encoding/json"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// words draws text: plain, hostile, long, empty.
func words() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z0-9:.@/_ -]{0,24}`), rapid.String(), rapid.Just(""), rapid.StringMatching(`[ -~]{500,530}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
	)
}

func subjects() *rapid.Generator[SubjectRef] {
	return rapid.Custom(func(t *rapid.T) SubjectRef { return SubjectRef{words().Draw(t, "kind"), words().Draw(t, "id")} })
}

func labels() *rapid.Generator[abi.Classification] {
	return rapid.Map(rapid.IntRange(0, 6), func(i int) abi.Classification { return abi.Classification(i) })
}

func suggestions() *rapid.Generator[Suggestion] {
	return rapid.Custom(func(t *rapid.T) Suggestion {
		word := words()
		return Suggestion{
			Kind: word.Draw(t, "kind"), Subject: word.Draw(t, "subject"), Capability: word.Draw(t, "capability"), Environment: word.Draw(t, "environment"),
			Space: word.Draw(t, "space"), Grant: word.Draw(t, "grant"), Biome: word.Draw(t, "biome"), Call: word.Draw(t, "call"),
			Endpoint: word.Draw(t, "endpoint"), Secret: word.Draw(t, "secret"), URL: word.Draw(t, "url"),
			Globs: rapid.SliceOfN(word, 0, 3).Draw(t, "globs"), Classification: labels().Draw(t, "classification"),
			Seconds: rapid.Int64().Draw(t, "seconds"), Detail: word.Draw(t, "detail"),
		}
	})
}

func codes() *rapid.Generator[abi.Code] {
	return rapid.SampledFrom([]abi.Code{"", abi.CodeMissingGrant, abi.CodeGuestTrap})
}

// The encoders of the two hot bodies write what encoding/json writes of the settled body, or say
// that they did not; whole events go through either way and are the same.
func TestEncodersAreJSON(t *testing.T) {
	word := words()
	fast := 0
	same := func(rt *rapid.T, body, pointer Body, got []byte, plain bool) {
		settled, err := body.settle()
		if err != nil {
			return
		}
		want, err := json.Marshal(settled)
		if plain {
			fast++
			if err != nil || string(got) != string(want) {
				rt.Fatalf("%s\nand encoding/json\n%s (%v)", got, want, err)
			}
		}
		r := newRequest()
		defer r.free()
		if e := r.encode(&Event{Org: "acme", ID: NewID(), Body: pointer}); (e == nil) != (err == nil) {
			rt.Fatalf("encode: %v, encoding/json: %v", e, err)
		}
		if err == nil && string(r.body) != string(want) {
			rt.Fatalf("encode: %s\nwant %s", r.body, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := Decided{
			Envelope: Envelope{
				Subject: subjects().Draw(rt, "subject"), CallerKind: word.Draw(rt, "caller"), Origin: word.Draw(rt, "origin"),
				Space: word.Draw(rt, "space"), Environment: abi.EnvironmentRef(word.Draw(rt, "environment")),
				Capability: abi.CapabilityRef(word.Draw(rt, "capability")), Session: word.Draw(rt, "session"),
				Workspace: word.Draw(rt, "workspace"), Trace: word.Draw(rt, "trace"), InputDigest: word.Draw(rt, "digest"),
				InputBytes: rapid.Int64().Draw(rt, "bytes"),
			},
			Verdict: rapid.SampledFrom([]Verdict{VerdictAllow, VerdictDeny, VerdictNeedsApproval}).Draw(rt, "verdict"),
			Code:    codes().Draw(rt, "code"), Biome: word.Draw(rt, "biome"), Digest: word.Draw(rt, "module"),
			Generation: rapid.Uint64().Draw(rt, "generation"), ReachCheck: word.Draw(rt, "reach check"),
			Grants: rapid.SliceOfN(word, 0, 3).Draw(rt, "grants"), Reach: abi.Reach(rapid.IntRange(0, 4).Draw(rt, "reach")),
			Declared: labels().Draw(rt, "declared"), Label: labels().Draw(rt, "label"),
			Ceiling: labels().Draw(rt, "ceiling"), Clearance: labels().Draw(rt, "clearance"),
			Lifecycle: word.Draw(rt, "lifecycle"), ReplacedBy: abi.CapabilityRef(word.Draw(rt, "successor")),
		}
		if rapid.Bool().Draw(rt, "agent") {
			u := subjects().Draw(rt, "user")
			d.User = &u
		}
		if rapid.Bool().Draw(rt, "child") {
			d.Parent, d.Root = NewID(), NewID()
			d.Chain = rapid.SliceOfN(word, 0, 4).Draw(rt, "chain")
		}
		for range rapid.SampledFrom([]int{0, 1, 12, maxList + 1}).Draw(rt, "checks") {
			d.Checks = append(d.Checks, Check{word.Draw(rt, "check"), "pass", codes().Draw(rt, "check code"), word.Draw(rt, "detail")})
		}
		for range rapid.IntRange(0, 2).Draw(rt, "suggestions") {
			d.Suggestions = append(d.Suggestions, suggestions().Draw(rt, "suggestion"))
		}
		if d.check() == nil {
			got, plain := appendDecided(nil, &d)
			same(rt, d, &d, got, plain)
		}

		e := Ended{
			Outcome: rapid.SampledFrom([]Outcome{OutcomeCompleted, OutcomeFailed, OutcomeInterrupted}).Draw(rt, "outcome"),
			Code:    codes().Draw(rt, "end code"), Released: rapid.Bool().Draw(rt, "released"), Label: labels().Draw(rt, "end label"),
			OutputBytes: rapid.Int64().Draw(rt, "output"), DurationMS: rapid.Int64().Draw(rt, "ms"), Fuel: rapid.Int64().Draw(rt, "fuel"),
			PeakMemory: rapid.Int64Range(0, 2).Draw(rt, "memory"), HostCalls: rapid.Int64Range(0, 2).Draw(rt, "calls"),
			Generation: rapid.Uint64Range(0, 2).Draw(rt, "generation"),
			LogBytes:   rapid.Int64Range(0, 2).Draw(rt, "log"), LinesOmitted: rapid.IntRange(0, 2).Draw(rt, "omitted"),
			Unknown: rapid.SliceOfN(rapid.Int(), 0, 3).Draw(rt, "unknown"),
		}
		for range rapid.IntRange(0, 4).Draw(rt, "lines") {
			e.Lines = append(e.Lines, Line{
				Line: rapid.Int().Draw(rt, "line"), Function: word.Draw(rt, "function"), Target: word.Draw(rt, "target"), Secret: word.Draw(rt, "secret"), Code: codes().Draw(rt, "line code"),
				BytesIn: rapid.Int64Range(0, 2).Draw(rt, "in"), BytesOut: rapid.Int64Range(0, 2).Draw(rt, "out"), Label: labels().Draw(rt, "line label"),
			})
		}
		for range rapid.SampledFrom([]int{0, 1, 2, maxList + 1}).Draw(rt, "end suggestions") {
			e.Suggestions = append(e.Suggestions, suggestions().Draw(rt, "suggestion"))
		}
		if rapid.IntRange(0, 3).Draw(rt, "cancelled") == 0 {
			e.Cancel = &Cancel{Requested: time.UnixMilli(rapid.Int64Range(0, 1<<40).Draw(rt, "when")).UTC()}
		}
		if e.check() == nil {
			got, plain := appendEnded(nil, &e)
			same(rt, e, &e, got, plain)
		}
	})
	d, e := pair()
	for _, b := range []struct {
		body Body
		enc  func() ([]byte, bool)
	}{
		{d, func() ([]byte, bool) { return appendDecided(nil, &d) }},
		{e, func() ([]byte, bool) { return appendEnded(nil, &e) }},
	} {
		got, plain := b.enc()
		settled, err := b.body.settle()
		if want, _ := json.Marshal(settled); err != nil || !plain || string(got) != string(want) {
			t.Errorf("an ordinary body does not take the fast way: %v %v\n%s\n%s", err, plain, got, want)
		}
	}
}

// A receipt that is too long for an entry is shortened on the fast way too.
func TestLongReceipt(t *testing.T) {
	_, e := pair()
	for len(e.Lines) < MaxLines {
		e.Lines = append(e.Lines, Line{Line: len(e.Lines), Function: "file_read", Target: longText})
	}
	r := newRequest()
	defer r.free()
	if err := r.encode(&Event{Org: "acme", ID: NewID(), Body: &e}); err != nil || len(r.body) > maxBody {
		t.Fatalf("%d bytes, %v", len(r.body), err)
	}
	var got Ended
	if err := json.Unmarshal(r.body, &got); err != nil || len(got.Lines)+got.LinesOmitted != MaxLines {
		t.Errorf("%d lines and %d omitted, %v", len(got.Lines), got.LinesOmitted, err)
	}
}

var longText = func() string {
	b := make([]byte, maxText)
	for i := range b {
		b[i] = 'x'
	}
	return string(b)
}()

// The tree is the tree of package tlog, which is that of RFC 6962.
func TestFrontierIsRFC6962(t *testing.T) {
	var f frontier
	var leaf leafHasher
	stored := []tlog.Hash{}
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = stored[x]
		}
		return out, nil
	})
	for n := range int64(300) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil || f.root() != want {
			t.Fatalf("size %d: %v, want %v, %v", n, f.root(), want, err)
		}
		data := []byte{byte(n), byte(n >> 3), 7}
		hashes, err := tlog.StoredHashes(n, data, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
		f.add(leaf.of(data))
	}
}

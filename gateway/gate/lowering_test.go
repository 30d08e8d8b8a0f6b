package gate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// S3: a declassification lowers where one invocation starts, by what the session was given and by nothing
// else: never below the floor, the declaration or what was approved, not for a mark that has risen, and
// not for what the invocation calls. What it may do is never more than without.
func TestLowering(t *testing.T) {
	env := ref("project")
	label := rapid.SampledFrom(abi.Classifications())
	rapid.Check(t, func(rt *rapid.T) {
		w := full()
		w.floor = label.Draw(rt, "floor")
		f := w.facts(env, caller, abi.ReachOwner)
		f.Mark = label.Draw(rt, "mark")
		if rapid.Bool().Draw(rt, "declares") {
			f.Declared = label.Draw(rt, "declared")
		}
		without := decide(w, f)
		lowered := f
		lowered.Lower = &Lowering{From: label.Draw(rt, "from"), To: label.Draw(rt, "to"), Sink: SinkOutput}
		with := decide(w, lowered)

		least := w.floor
		if f.Declared.Valid() {
			least = abi.Join(least, f.Declared)
		}
		want := abi.Join(least, f.Mark)
		if f.Mark <= lowered.Lower.From {
			want = abi.Join(least, abi.Meet(f.Mark, lowered.Lower.To))
		}
		if with.Start != want || with.Start > without.Start {
			rt.Errorf("it starts at %s, want %s; without at %s", with.Start, want, without.Start)
		}
		if with.Ceiling != without.Ceiling || with.Reach != without.Reach {
			rt.Errorf("%+v\n%+v", with, without)
		}
		if with.Verdict != Allow {
			return
		}
		s := w.snapshot()
		a := Authorize(s, &lowered, &with, terms(func() *Snapshot { return s }))
		if spec := a.Spec(); len(spec.Calls) != 0 || len(spec.Endpoints) != 0 || spec.Resources.Any() {
			rt.Errorf("besides its output it may %+v", spec)
		}
		if c := lowered.Child(a, with.Start, callee, noon); c.Lower != nil || c.mark() != f.Mark {
			rt.Error("a child is lowered too")
		}
	})
}

// Of the endpoints that were kept, the one that was approved stays.
func TestLoweringToAnEndpoint(t *testing.T) {
	w := full()
	s := w.snapshot()
	for _, name := range []string{"a", "b"} {
		e, err := egress.Compile(name, egress.Rule{Scheme: "https", Host: name + ".test", Methods: []string{"GET"}, Path: "/**"}, abi.Public, abi.Public, false)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := s.Route(w.org, caller, ref("project"))
		b.Installed.Kept.Endpoints = append(b.Installed.Kept.Endpoints, e)
	}
	for sink, want := range map[string]int{"endpoint:a": 1, "endpoint:b": 1, "endpoint:c": 0, "endpoint:": 0, SinkOutput: 0} {
		f := w.facts(ref("project"), caller, abi.ReachOwner)
		f.Lower = &Lowering{From: abi.Regulated, To: abi.Public, Sink: sink}
		d := Decide(s, &f)
		spec := Authorize(s, &f, &d, terms(func() *Snapshot { return s })).Spec()
		if len(spec.Endpoints) != want || want == 1 && "endpoint:"+spec.Endpoints[0].Name != sink {
			t.Errorf("%s: %+v", sink, spec.Endpoints)
		}
	}
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/schema"
)

// BiomeTestCmd runs examples and tests.
type BiomeTestCmd struct {
	source
	Tests string   `help:"Test file; by default tests.json beside the manifest." type:"path" placeholder:"FILE"`
	With  []string `help:"Another biome it invokes, as a module; may be repeated." type:"existingfile" placeholder:"FILE"`
}

// trialResult is one line of the report.
type trialResult struct {
	Kind   string            `json:"kind"` // schema, example or test
	Name   string            `json:"name"`
	Step   int               `json:"step,omitempty"` // of a test, from 1
	Ref    abi.CapabilityRef `json:"ref"`
	Passed bool              `json:"passed"`
	Why    string            `json:"why,omitempty"` // it did not
	*outcome
}

// trialReport is what biome test prints; with --output json as it is. Members are only ever added.
type trialReport struct {
	Biome   string        `json:"biome"`
	Digest  string        `json:"digest"`
	Passed  int           `json:"passed"`
	Failed  int           `json:"failed"`
	Results []trialResult `json:"results"`
}

// Run runs all of them. The exit code is 1 when one fails, or when there is nothing to run.
func (c *BiomeTestCmd) Run(e *Env) (err error) {
	tests, err := readTrialFile(cmp.Or(c.Tests, filepath.Join(c.beside(), TestFile)), c.Tests != "")
	if err != nil {
		return err
	}
	biome, err := c.biome(e)
	if err != nil {
		return err
	}
	inspected := inspector().Inspect(biome)
	if !inspected.Accepted {
		return e.judged(inspected)
	}
	if n := len(inspected.Manifest.Examples); len(tests.Examples) > n {
		return fmt.Errorf("the test file expects something of %d examples, and the manifest has %d", len(tests.Examples), n)
	}
	g, err := openTrial(e.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, name := range c.With {
		other, err := (&source{Source: name}).biome(e)
		if err != nil {
			return err
		}
		if err := g.upload(other); err != nil {
			return fmt.Errorf("%s: %w", name, refusedModule(e, err))
		}
	}
	if err := g.upload(biome); err != nil {
		return refusedModule(e, err)
	}
	report := &trialReport{Biome: inspected.Manifest.Name, Digest: inspected.Digest, Results: []trialResult{}}
	report.schemas(inspected.Manifest)
	if err := report.examples(g, inspected.Manifest, tests.Examples); err != nil {
		return err
	}
	for _, t := range tests.Tests {
		if err := report.test(g, t); err != nil {
			return err
		}
	}
	if e.json {
		err = e.encode(report)
	} else {
		err = report.text(e.stdout)
	}
	if err == nil && (report.Failed > 0 || report.Passed == 0) {
		err = errQuiet(exitFailed)
	}
	return err
}

func (r *trialReport) add(one trialResult) {
	one.Passed = one.Why == ""
	if one.Passed {
		r.Passed++
	} else {
		r.Failed++
	}
	r.Results = append(r.Results, one)
}

// schemas holds the examples of each capability to its input schema: they are shown to callers.
func (r *trialReport) schemas(m *abi.Manifest) {
	for i := range m.Provides {
		d := &m.Provides[i]
		compiled, err := schema.Compile(d.InputSchema)
		for n, input := range d.Examples {
			one := trialResult{Kind: "schema", Name: fmt.Sprintf("example %d of %s fits its input schema", n+1, d.Ref), Ref: d.Ref}
			if err == nil {
				if bad := compiled.Validate(input); bad != nil {
					one.Why = abi.AsError(bad).Message
				}
			}
			r.add(one)
		}
	}
}

// examples runs the manifest's examples, one after the other in one session.
func (r *trialReport) examples(g *trialGateway, m *abi.Manifest, expected []expectation) error {
	if len(m.Examples) == 0 {
		return nil
	}
	token, err := g.open()
	if err != nil {
		return err
	}
	for i, example := range m.Examples {
		var x expectation
		if i < len(expected) {
			x = expected[i]
		}
		one := trialResult{Kind: "example", Name: fmt.Sprintf("example %d of the manifest", i+1), Ref: example.Ref}
		if one.outcome, err = g.invoke(token, example.Ref, example.Input); err != nil {
			return err
		}
		one.Why = x.judge(one.outcome)
		r.add(one)
	}
	return nil
}

// test runs one test, to its first step that is not as expected.
func (r *trialReport) test(g *trialGateway, t trial) error {
	token, err := g.open()
	if err != nil {
		return err
	}
	for i, s := range t.Steps {
		one := trialResult{Kind: "test", Name: t.Name, Step: i + 1, Ref: s.Ref}
		if one.outcome, err = g.invoke(token, s.Ref, s.Input); err != nil {
			return err
		}
		one.Why = s.judge(one.outcome)
		r.add(one)
		if one.Why != "" {
			return nil
		}
	}
	return nil
}

// judge says what is not as expected, or nothing.
func (x *expectation) judge(o *outcome) string {
	switch {
	case x.Fails != "" && o.Code == "":
		return fmt.Sprintf("it should fail with %s, and answered %s", x.Fails, o.Output)
	case x.Fails != o.Code:
		why := fmt.Sprintf("it failed with %s: %s", o.Code, o.Detail)
		if x.Fails != "" {
			why = fmt.Sprintf("it should fail with %s; %s", x.Fails, why)
		}
		return why
	case x.Output != nil && !sameJSON(x.Output, []byte(o.Output)):
		return fmt.Sprintf("it should answer %s, and answered %s", x.Output, o.Output)
	}
	if x.Refused == nil {
		return ""
	}
	got := make([]string, 0, len(o.Refusals))
	for _, line := range o.Refusals {
		got = append(got, line.Function)
	}
	if !slices.Equal(got, x.Refused) {
		return fmt.Sprintf("refused should be %v, and is %v", x.Refused, got)
	}
	return ""
}

func (r *trialReport) text(w io.Writer) error {
	var b strings.Builder
	for _, one := range r.Results {
		mark, where := "ok  ", ""
		if !one.Passed {
			mark = "FAIL"
		}
		if one.Step > 0 {
			where = fmt.Sprintf(", step %d", one.Step)
		}
		fmt.Fprintf(&b, "%s  %s%s", mark, one.Name, where)
		if one.outcome != nil {
			fmt.Fprintf(&b, ": %s, fuel %d", one.Ref, one.Fuel)
		}
		b.WriteString("\n")
		if !one.Passed {
			fmt.Fprintf(&b, "      %s\n", one.Why)
		}
		if one.outcome != nil {
			for _, line := range one.Refusals {
				fmt.Fprintf(&b, "      refused: %s %s: %s\n", line.Function, line.Target, line.Code)
			}
		}
	}
	fmt.Fprintf(&b, "%s: %d passed, %d failed\n", r.Biome, r.Passed, r.Failed)
	if r.Passed+r.Failed == 0 {
		fmt.Fprintf(&b, "there is nothing to run: the manifest has no examples, and there is no %s\n", TestFile)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// TestFile is the name of a biome's tests, beside its manifest.
const TestFile = "tests.json"

// Bounds of a test file.
const (
	maxTestFile = 4 << 20
	maxTests    = 1000
	maxSteps    = 100
)

// trialFile is what is expected of a biome, one strict JSON document.
type trialFile struct {
	// Examples are what the manifest's examples answer, in their order; those beyond the list have to
	// succeed, no more.
	Examples []expectation `json:"examples"`
	Tests    []trial       `json:"tests"`
}

// trial is one test: invocations one after the other in a session, a space and a workspace of its own.
type trial struct {
	Name  string      `json:"name"`
	Steps []trialStep `json:"steps"`
}

// trialStep is one invocation.
type trialStep struct {
	Ref   abi.CapabilityRef `json:"ref"`
	Input json.RawMessage   `json:"input"`
	expectation
}

// expectation is what has to come of an invocation. Without output and fails it has to succeed.
type expectation struct {
	Output json.RawMessage `json:"output"` // the same JSON value, however it is written
	// Fails is the code of the failure: the capability's own, where it failed by itself.
	Fails string `json:"fails"`
	// Refused are the host functions that were refused, in the order of the calls; nil is not looked at.
	Refused []string `json:"refused"`
}

// readTrialFile reads a test file; one that is not there and was not asked for is empty.
func readTrialFile(path string, asked bool) (*trialFile, error) {
	f := &trialFile{}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if len(raw) > maxTestFile {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, len(raw), maxTestFile)
	}
	if err := abi.DecodeStrict(raw, f); err != nil {
		e := abi.AsError(err)
		at := ""
		if e.Pointer != "" {
			at = " at " + e.Pointer
		}
		return nil, fmt.Errorf("%s%s: %s", path, at, e.Message)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *trialFile) check() error {
	for i, x := range f.Examples {
		if err := x.check(); err != nil {
			return fmt.Errorf("example %d: %w", i+1, err)
		}
	}
	if len(f.Tests) > maxTests {
		return fmt.Errorf("at most %d tests are run, these are %d", maxTests, len(f.Tests))
	}
	names := map[string]bool{}
	for i, t := range f.Tests {
		switch {
		case t.Name == "" || names[t.Name]:
			return fmt.Errorf("test %d: each test has a name of its own", i+1)
		case len(t.Steps) == 0 || len(t.Steps) > maxSteps:
			return fmt.Errorf("test %q: a test has 1 to %d steps", t.Name, maxSteps)
		}
		names[t.Name] = true
		for n, s := range t.Steps {
			err := s.expectation.check()
			if s.Ref == "" || s.Input == nil {
				err = errors.Join(err, errors.New("ref and input are needed"))
			}
			if err != nil {
				return fmt.Errorf("test %q, step %d: %w", t.Name, n+1, err)
			}
		}
	}
	return nil
}

func (x *expectation) check() error {
	if x.Output != nil && x.Fails != "" {
		return errors.New("output and fails exclude each other")
	}
	for _, name := range x.Refused {
		if _, known := abi.FunctionByName(name); !known {
			return fmt.Errorf("%q is no host function", name)
		}
	}
	return nil
}

// sameJSON reports whether two documents are the same value. Members may be in any order.
func sameJSON(a, b []byte) bool {
	var x, y any
	return decodeNumbers(a, &x) == nil && decodeNumbers(b, &y) == nil && sameValue(x, y)
}

func decodeNumbers(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, there := b[k]; !there || !sameValue(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	}
	return a == b
}

// sameNumber holds integers to every digit; what is written with a point or an exponent is compared as
// the closest double.
func sameNumber(a, b string) bool {
	if a == b || !strings.ContainsAny(a+b, ".eE") {
		return a == b
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

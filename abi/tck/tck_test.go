package tck

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// steps calls f for every step of every case, those of children included.
func eachStep(f func(c Case, s Step)) {
	var walk func(Case, []Step)
	walk = func(c Case, steps []Step) {
		for _, s := range steps {
			f(c, s)
			for _, a := range s.Args {
				if child, ok := a.(Script); ok {
					walk(c, child)
				}
			}
		}
	}
	for _, c := range Cases() {
		for _, r := range c.Runs {
			walk(c, r.Steps)
		}
	}
}

// Each function of the table has an example in which it succeeds, and one that any binding can run.
func TestEachFunctionHasACase(t *testing.T) {
	done := map[string]bool{}
	eachStep(func(c Case, s Step) {
		if s.Want.Errno == 0 && c.ID == s.Function {
			done[s.Function] = true
		}
		if _, known := abi.FunctionByName(s.Function); !known {
			t.Errorf("%s calls %s, which is not in the table", c.ID, s.Function)
		}
	})
	for _, f := range abi.Functions() {
		example, ok := Example(f.Name)
		if !ok || !example.Portable() {
			t.Errorf("%s has no example, or one with raw pointers", f.Name)
		}
		if !done[f.Name] {
			t.Errorf("%s does not succeed in its example", f.Name)
		}
	}
}

// Each error number is what some call must give.
func TestEachErrnoHasACase(t *testing.T) {
	seen := map[abi.Errno][]string{}
	eachStep(func(c Case, s Step) { seen[s.Want.Errno] = append(seen[s.Want.Errno], c.ID) })
	for _, e := range abi.Errnos() {
		if len(seen[e.Errno]) == 0 {
			t.Errorf("%s has no case", e.Name)
		}
	}
}

// A case that is named after an error number is about it, and the function's row lists it.
func TestCasesAreWhatTheySay(t *testing.T) {
	general := map[string]bool{"EINVAL": true, "EFAULT": true, "EDENIED": true, "EQUOTA": true, "ECANCELED": true, "EINTERNAL": true}
	ids := map[string]bool{}
	for _, c := range Cases() {
		if ids[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		ids[c.ID] = true
		function, what, _ := strings.Cut(c.ID, "/")
		if !strings.HasPrefix(what, "E") {
			continue
		}
		found := false
		for _, r := range c.Runs {
			for _, s := range r.Steps {
				found = found || s.Function == function && s.Want.Errno.String() == what
			}
		}
		if !found {
			t.Errorf("%s never expects it", c.ID)
		}
		row, _ := abi.FunctionByName(function)
		listed := general[what]
		for _, e := range row.Errnos {
			listed = listed || e.String() == what
		}
		if !listed {
			t.Errorf("%s: the row of %s does not list it", c.ID, function)
		}
	}
	for _, f := range abi.Functions() {
		for _, p := range f.Params {
			if strings.HasSuffix(p.Name, "ptr") && !ids[f.Name+"/EFAULT"] {
				t.Errorf("%s takes a pointer and has no case of a bad one", f.Name)
			}
		}
	}
}

// The guest has its manifest, and the manifest satisfies the contract.
func TestGuest(t *testing.T) {
	guest := Guest()
	at := strings.LastIndex(string(guest), abi.ManifestSection)
	if at < 0 {
		t.Fatal("there is no manifest in it")
	}
	if _, problems := abi.DecodeManifest(guest[at+len(abi.ManifestSection):]); problems != nil {
		t.Error(problems)
	}
	imports := map[string]bool{}
	for _, f := range abi.Functions() {
		imports[f.Name] = strings.Contains(string(guest), string(rune(len(abi.Module)))+abi.Module+string(rune(len(f.Name)))+f.Name)
		if !imports[f.Name] {
			t.Errorf("the guest does not import %s: it is older than the table", f.Name)
		}
	}
}

// The runner notices what is not as it must be.
func TestCheckNotices(t *testing.T) {
	r := Run{Steps: []Step{call("kv_get", "k").gives(2).body("41").meta("version")}}
	good := Outcome{Output: []byte(`[[2,"3431","7b2276657273696f6e223a317d"]]`), Receipt: []Line{{Function: "kv_get"}}}
	if err := r.judge(&good, ""); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Outcome){
		"value":       func(o *Outcome) { o.Output = []byte(`[[3,"3431","7b2276657273696f6e223a317d"]]`) },
		"errno":       func(o *Outcome) { o.Output = []byte(`[[-4,"",""]]`) },
		"body":        func(o *Outcome) { o.Output = []byte(`[[2,"3432","7b2276657273696f6e223a317d"]]`) },
		"meta":        func(o *Outcome) { o.Output = []byte(`[[2,"3431","7b7d"]]`) },
		"too little":  func(o *Outcome) { o.Output = []byte(`[]`) },
		"no report":   func(o *Outcome) { o.Output = nil },
		"code":        func(o *Outcome) { o.Code = abi.CodeInternal },
		"no receipt":  func(o *Outcome) { o.Receipt = nil },
		"the receipt": func(o *Outcome) { o.Receipt = []Line{{"kv_get", abi.ENOENT}} },
	} {
		o := good
		if change(&o); r.judge(&o, "") == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	log := Run{Silent: true, Want: Ending{Code: abi.CodeGuestError, Failure: Failure{"A", "b"}, LogBytes: 4}}
	if log.judge(&Outcome{Code: abi.CodeGuestError, Failure: Failure{"A", "b"}, LogBytes: 4}, "") != nil ||
		log.judge(&Outcome{Code: abi.CodeGuestError, Failure: Failure{"A", "c"}, LogBytes: 4}, "") == nil ||
		log.judge(&Outcome{Code: abi.CodeGuestError, Failure: Failure{"A", "b"}}, "") == nil {
		t.Error("failures and logs are not compared")
	}
}

// The guest in Go is built with a manifest file of its own, which says the same.
func TestManifestFile(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "guests", "tck", "manifest.json")
	want, err := json.MarshalIndent(Manifest(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not the kit's manifest, %v: run with -update", path, err)
	}
}

var update = flag.Bool("update", false, "rewrite what is generated")

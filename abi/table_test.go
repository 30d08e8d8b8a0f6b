package abi_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/ecotone-dev/ecotone/abi"
)

func TestCodeTable(t *testing.T) {
	upper := regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	seen := map[Code]bool{}
	for _, c := range Codes() {
		if seen[c.Code] {
			t.Errorf("%s is there twice", c.Code)
		}
		seen[c.Code] = true
		if !upper.MatchString(string(c.Code)) {
			t.Errorf("%s is not upper snake case", c.Code)
		}
		if !slices.Contains(Kinds(), c.Kind) {
			t.Errorf("%s has kind %q, which is not in the closed class", c.Code, c.Kind)
		}
		if c.Status < 400 || c.Status > 599 {
			t.Errorf("%s has status %d: a refusal is never a success", c.Code, c.Status)
		}
		if c.Errno < 0 || int(c.Errno) > len(Errnos()) {
			t.Errorf("%s has errno %d, which the ABI does not have", c.Code, int(c.Errno))
		}
		if !strings.HasSuffix(c.Meaning, ".") {
			t.Errorf("%s: the meaning is not a sentence: %q", c.Code, c.Meaning)
		}
		if got, ok := c.Code.Info(); !ok || got != c {
			t.Errorf("%s: Info does not find its row", c.Code)
		}
	}
}

// Every constant of the source has its row: a code that the catalogue does not know would go
// out as INTERNAL.
func TestEveryCodeConstantHasARow(t *testing.T) {
	src, err := os.ReadFile("code.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?m)^\tCode\w+\s+Code = "(\w+)"`).FindAllStringSubmatch(string(src), -1)
	if len(constants) != len(Codes()) {
		t.Errorf("%d constants, %d rows", len(constants), len(Codes()))
	}
	for _, m := range constants {
		if _, ok := Code(m[1]).Info(); !ok {
			t.Errorf("%s has no row", m[1])
		}
	}
}

func TestOnlyTwoKindsAreRetryable(t *testing.T) { // M60
	for _, k := range Kinds() {
		want := k == KindNotReady || k == KindUnauthenticated
		if k.Retryable() != want {
			t.Errorf("%s: retryable is %v", k, k.Retryable())
		}
	}
	if len(Kinds()) != 12 {
		t.Errorf("the closed class has %d kinds", len(Kinds()))
	}
}

func TestUnknownCodeIsInternal(t *testing.T) {
	info, ok := Code("NO_SUCH_CODE").Info()
	if ok || info.Kind != KindInternal || info.Status != 500 || Code("NO_SUCH_CODE").Errno() != EINTERNAL {
		t.Errorf("an unknown code answers %+v, %v", info, ok)
	}
	if CodeGuestTrap.Errno() != EINTERNAL {
		t.Error("a code that guests never see must not leak a number of its own")
	}
}

func TestErrnoTable(t *testing.T) {
	names := map[string]bool{}
	for i, e := range Errnos() {
		if int(e.Errno) != i+1 {
			t.Errorf("row %d has number %d: the table is dense and ascending", i, int(e.Errno))
		}
		if names[e.Name] {
			t.Errorf("%s is there twice", e.Name)
		}
		names[e.Name] = true
		if e.Errno.String() != e.Name || e.Errno.Error() != e.Name+": "+e.Meaning {
			t.Errorf("%d renders as %q and %q", int(e.Errno), e.Errno, e.Errno.Error())
		}
	}
	for _, e := range []Errno{0, -1, Errno(len(Errnos()) + 1)} {
		if names[e.String()] {
			t.Errorf("%d renders as the known name %q", int(e), e)
		}
	}
}

// The numbers are frozen: they are compiled into other people's modules.
func TestErrnoNumbersAreFrozen(t *testing.T) {
	const frozen = "EINVAL EFAULT EDENIED ENOENT EEXIST EVERSION EREAD ENOTEMPTY ENOTREG ENOMATCH EAMBIGUOUS EEMPTY " +
		"ESAME EDELETED ETOOBIG EQUOTA EUNAVAIL ETIMEOUT ECANCELED EIO ESECRET ECONFLICT ECHILD EINTERNAL"
	var got []string
	for _, e := range Errnos() {
		got = append(got, e.Name)
	}
	if s := strings.Join(got, " "); s != frozen {
		t.Errorf("the numbers changed:\n got %s\nwant %s", s, frozen)
	}
}

func TestFunctionTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	general := []Errno{EINVAL, EFAULT, EDENIED, EQUOTA, ECANCELED}
	groups := []Group{GroupCall, GroupKV, GroupFiles, GroupInvoke, GroupHTTP, GroupSecret, GroupAudit}
	seen := map[string]bool{}
	reaches := map[Reach]int{}
	for i := range Functions() {
		f := &Functions()[i]
		if seen[f.Name] || !name.MatchString(f.Name) || strings.HasPrefix(f.Name, ReservedPrefix) {
			t.Errorf("%q: repeated, reserved or not lower snake case", f.Name)
		}
		seen[f.Name] = true
		if got, ok := FunctionByName(f.Name); !ok || got != f {
			t.Errorf("%s: FunctionByName does not find its row", f.Name)
		}
		if !f.Reach.Valid() || !slices.Contains(groups, f.Group) {
			t.Errorf("%s: reach %v, group %q", f.Name, f.Reach, f.Group)
		}
		reaches[f.Reach]++
		if f.Price.Base == 0 {
			t.Errorf("%s is free: every host call has a price (S10)", f.Name)
		}
		if f.Doc == "" || f.Returns == "" || f.Effect > EffectExternal || f.Flow > FlowBoth {
			t.Errorf("%s: the row is not complete", f.Name)
		}
		params := map[string]bool{}
		for _, p := range f.Params {
			if params[p.Name] || (p.Type != I32 && p.Type != I64) {
				t.Errorf("%s: parameter %q repeated or of an unknown type", f.Name, p.Name)
			}
			params[p.Name] = true
		}
		for _, e := range f.Errnos {
			if e < 1 || int(e) > len(Errnos()) || slices.Contains(general, e) {
				t.Errorf("%s documents errno %d, which is unknown or said for every call", f.Name, int(e))
			}
		}
		// What acts on the world takes part in information flow and names its target.
		if f.Effect.NeedsIntent() && (f.Flow == FlowNone || f.Flow == FlowSource || f.Receipt == "") {
			t.Errorf("%s acts (%s) and is no sink, or its receipt line names nothing", f.Name, f.Effect)
		}
		if f.Effect == EffectRead && (f.Flow != FlowSource || f.Receipt == "") {
			t.Errorf("%s reads and is no source, or its receipt line names nothing", f.Name)
		}
		if f.Group == GroupCall && (f.Effect != EffectNone || f.Reach != ReachOwner) {
			t.Errorf("%s is of the call itself and has effect %s, reach %s", f.Name, f.Effect, f.Reach)
		}
	}
	for _, r := range Reaches() {
		if reaches[r] == 0 {
			t.Errorf("no function has reach %s", r)
		}
	}
	if _, ok := FunctionByName("no_such_function"); ok {
		t.Error("an unknown function was found")
	}
}

func TestLimitTable(t *testing.T) {
	cutNotRefused := []string{"logLineBytes", "logBytes"} // over them records are cut or dropped with a marker
	seen := map[string]bool{}
	for i, row := range LimitTable() {
		if int(row.Limit) != i || row.Limit.Info() != row || seen[row.Name] {
			t.Errorf("%s: out of place or repeated", row.Name)
		}
		seen[row.Name] = true
		if row.Default < 1 || (row.Hard != 0 && row.Default > row.Hard) || row.Default > OperatorMax {
			t.Errorf("%s: default %d, hard %d", row.Name, row.Default, row.Hard)
		}
		if !slices.Contains([]string{"bytes", "count", "ms", "fuel"}, row.Unit) {
			t.Errorf("%s: unit %q", row.Name, row.Unit)
		}
		if !slices.Contains([]string{ScopeUpload, ScopeEnvironment, ScopeServer}, row.Scope) {
			t.Errorf("%s: scope %q", row.Name, row.Scope)
		}
		if _, ok := row.Code.Info(); !ok && !slices.Contains(cutNotRefused, row.Name) {
			t.Errorf("%s: ends in code %q, which is not in the catalogue", row.Name, row.Code)
		}
	}
}

func TestLimitsSet(t *testing.T) { // PF-H10
	for _, row := range LimitTable() {
		hard := row.Hard
		if hard == 0 {
			hard = OperatorMax
		}
		for _, bad := range []int64{0, -1, hard + 1, 1<<63 - 1, -1 << 63} {
			l := DefaultLimits()
			if err := l.Set(row.Name, bad); CodeOf(err) != CodeInvalidRequest {
				t.Errorf("%s = %d: %v", row.Name, bad, err)
			}
			if l != DefaultLimits() {
				t.Errorf("%s = %d was refused and changed something", row.Name, bad)
			}
		}
		for _, good := range []int64{1, hard} {
			l := DefaultLimits()
			if err := l.Set(row.Name, good); err != nil || l.Get(row.Limit) != good {
				t.Errorf("%s = %d: %v, is %d", row.Name, good, err, l.Get(row.Limit))
			}
		}
	}
	l := DefaultLimits()
	for _, unknown := range []string{"", "Wall", "walls", "unlimited"} {
		if err := l.Set(unknown, 5); CodeOf(err) != CodeUnknownField {
			t.Errorf("unknown limit %q: %v", unknown, err)
		}
	}
}

func TestLimitsJSON(t *testing.T) {
	for _, bad := range []string{
		`{"wall":0}`, `{"wall":-1}`, `{"wall":null}`, `{"wall":1.5}`, `{"wall":"5"}`, `{"Wall":5}`,
		`{"wall":5,"wall":6}`, `{"wall":99999999999999999999}`, `[]`, `null`, `5`,
	} {
		var doc struct {
			Limits Limits `json:"limits"`
		}
		if err := DecodeStrict([]byte(`{"limits":`+bad+`}`), &doc); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	want := DefaultLimits()
	if err := want.Set("wall", 17); err != nil {
		t.Fatal(err)
	}
	b, err := want.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var got Limits
	if err := DecodeStrict(b, &got); err != nil || got != want {
		t.Errorf("%v: %v", err, got)
	}
	var zero Limits
	tight := want.Tighten(DefaultLimits())
	if zero.Tighten(want) != zero || tight.Get(LimitWall) != 17 {
		t.Error("Tighten is not the smaller of both")
	}
}

func TestWASITable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range WASIFunctions() {
		if seen[f.Name] || f.Does == "" || f.ForNative() == "" || f.Price.Base == 0 {
			t.Errorf("%s: repeated, not described or free", f.Name)
		}
		seen[f.Name] = true
		if got, ok := WASIFunctionByName(f.Name); !ok || got.Name != f.Name {
			t.Errorf("%s is not found", f.Name)
		}
		for _, p := range f.Pointers {
			if !strings.HasSuffix(f.Params[p.At].Name, "_ptr") || f.Params[p.At].Type != I32 || p.Count >= len(f.Params) {
				t.Errorf("%s: %+v", f.Name, p)
			}
		}
		if f.Native && f.Refused != 0 {
			t.Errorf("%s is in the subset and refused", f.Name)
		}
	}
	if len(seen) != 46 { // as many as preview 1 has
		t.Errorf("%d functions", len(seen))
	}
	if len(NativeWASI()) != 18 {
		t.Errorf("%d functions in the subset", len(NativeWASI()))
	}
	// H1: nothing of WASI that reaches outside the invocation is in the subset.
	for _, door := range []string{"path_open", "sock_accept", "sock_recv", "sock_send", "fd_readdir", "fd_pread", "proc_raise", "path_unlink_file"} {
		if f, ok := WASIFunctionByName(door); !ok || f.Native {
			t.Errorf("%s is in the subset", door)
		}
	}
}

func TestFaces(t *testing.T) {
	for _, row := range Faces() {
		if got, ok := row.Face.Info(); !ok || got.Face != row.Face || row.Title == "" || len(row.Results) == 0 {
			t.Errorf("%+v", row)
		}
		if row.Foreign != row.Face.Foreign() || row.Imports(Module) == row.Foreign {
			t.Errorf("%s is foreign: %v", row.Face, row.Foreign)
		}
		for _, module := range row.Modules {
			if _, known := row.Import(module, "no_such_function"); known {
				t.Errorf("%s has anything", module)
			}
		}
	}
	if f, ok := Face("").Info(); !ok || f.Face != FaceNative {
		t.Error("the face of who says nothing is not the native one")
	}
	if _, ok := Face("env").Info(); ok {
		t.Error("any face is there")
	}
	native, _ := FaceNative.Info()
	wasi, _ := FaceWASI.Info()
	for _, f := range WASIFunctions() {
		if _, known := native.Import(WASIModule, f.Name); known != f.Native {
			t.Errorf("native: %s: %v", f.Name, known)
		}
		if s, known := wasi.Import(WASIModule, f.Name); !known || s.Reach != 0 {
			t.Errorf("wasi: %s: %v", f.Name, known)
		}
	}
	for _, f := range Functions() {
		if s, known := native.Import(Module, f.Name); !known || s.Reach != f.Reach || len(s.Params) != len(f.Params) {
			t.Errorf("native: %s: %v", f.Name, known)
		}
		if _, known := wasi.Import(Module, f.Name); known {
			t.Errorf("wasi: %s", f.Name)
		}
	}
}

// The contract imports the standard library only; its tests draw their properties with rapid besides.
func TestImportsStandardLibraryOnly(t *testing.T) {
	for _, dir := range []string{".", "errno", "docgen"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", dir, err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				first, _, _ := strings.Cut(path, "/")
				own := path == "github.com/ecotone-dev/ecotone/abi" || strings.HasPrefix(path, "github.com/ecotone-dev/ecotone/abi/")
				drawn := path == "pgregory.net/rapid" && strings.HasSuffix(file, "_test.go")
				if strings.Contains(first, ".") && !own && !drawn {
					t.Errorf("%s imports %s", file, path)
				}
				if path == "net/http" || path == "net" || path == "os/exec" || path == "unsafe" {
					if !strings.HasSuffix(file, "_test.go") {
						t.Errorf("%s imports %s, which every host or guest would then link", file, path)
					}
				}
			}
		}
	}
}

// What a plug-in calls goes through host functions that there are, and reaches what they reach.
func TestExtismTable(t *testing.T) {
	seen := map[string]bool{}
	for i := range ExtismFunctions() {
		f := &ExtismFunctions()[i]
		if seen[f.Name] || f.Does == "" || f.Price.Base == 0 {
			t.Errorf("%s is there twice, says nothing of itself, or is free", f.Name)
		}
		seen[f.Name] = true
		want := ReachOwner
		for _, name := range f.Through {
			through, ok := FunctionByName(name)
			if !ok {
				t.Fatalf("%s goes through %q, which is not a host function", f.Name, name)
			}
			want = max(want, through.Reach)
		}
		if f.Reach() != want {
			t.Errorf("%s reaches %s", f.Name, f.Reach())
		}
		if row, ok := ExtismFunctionByName(f.Name); !ok || row != f {
			t.Errorf("%s is not found", f.Name)
		}
	}
	if f, _ := ExtismFunctionByName("http_request"); f.Reach() != ReachIntegration {
		t.Errorf("http_request reaches %s", f.Reach())
	}
	if _, ok := ExtismFunctionByName("mult"); ok {
		t.Error("a function that nobody has is found")
	}
}

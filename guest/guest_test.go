package guest_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/guest/guesttest"
)

// within runs f as the body of a capability.
func within(h *guesttest.Host, f func()) *guesttest.Outcome {
	return h.Run(func() int32 { f(); return 0 }, "{}")
}

// The SDK has every error number of the ABI under its name.
func TestErrnos(t *testing.T) {
	mine := []guest.Errno{
		guest.EINVAL, guest.EFAULT, guest.EDENIED, guest.ENOENT, guest.EEXIST, guest.EVERSION, guest.EREAD, guest.ENOTEMPTY,
		guest.ENOTREG, guest.ENOMATCH, guest.EAMBIGUOUS, guest.EEMPTY, guest.ESAME, guest.EDELETED, guest.ETOOBIG, guest.EQUOTA,
		guest.EUNAVAIL, guest.ETIMEOUT, guest.ECANCELED, guest.EIO, guest.ESECRET, guest.ECONFLICT, guest.ECHILD, guest.EINTERNAL,
	}
	if len(mine) != len(abi.Errnos()) {
		t.Fatalf("%d numbers, the ABI has %d", len(mine), len(abi.Errnos()))
	}
	for i, row := range abi.Errnos() {
		if mine[i] != row.Errno {
			t.Errorf("%s is %d here", row.Name, int(mine[i]))
		}
	}
}

// everyCall calls every host function once through the SDK, by the function's name.
var everyCall = map[string]func() error{
	"input":  func() error { _, err := guest.Input(); return err },
	"output": func() error { return guest.Output([]byte("1")) },
	"error":  func() error { return guest.Fail("CODE", "message") },
	"random": func() error { return guest.Random(make([]byte, 4)) },

	"kv_get":    func() error { _, err := guest.KV.Get("k"); return err },
	"kv_put":    func() error { return guest.KV.Put("k", nil) },
	"kv_delete": func() error { return guest.KV.Delete("k") },
	"kv_list":   func() error { _, _, err := guest.KV.List("", "", 0); return err },

	"file_stat":    func() error { _, err := guest.Files.Stat("f"); return err },
	"file_read":    func() error { _, err := guest.Files.ReadAll("f"); return err },
	"file_list":    func() error { _, _, err := guest.Files.List(".", "", 0); return err },
	"file_create":  func() error { _, err := guest.Files.Create("f", nil); return err },
	"file_write":   func() error { _, err := guest.Files.Write("f", nil); return err },
	"file_replace": func() error { _, err := guest.Files.Replace("f", "v", nil); return err },
	"file_edit":    func() error { _, err := guest.Files.Edit("f", "a", "b", false); return err },
	"file_copy":    func() error { return guest.Files.Copy("f", "g") },
	"file_move":    func() error { return guest.Files.Move("f", "g") },
	"file_remove":  func() error { return guest.Files.Remove("f") },
	"file_mkdir":   func() error { return guest.Files.Mkdir("d") },
	"file_grep":    func() error { _, _, err := guest.Files.Grep("x", "**", 0); return err },
	"file_glob":    func() error { _, _, err := guest.Files.Glob("**", 0); return err },

	"capability_invoke": func() error { _, err := guest.Invoke("a:b@1", nil); return err },
	"http_fetch":        func() error { _, err := guest.Fetch(guest.Request{URL: "https://a.example/"}); return err },
	"secret_hmac":       func() error { _, err := guest.HMAC("s", nil); return err },
	"audit_query":       func() error { _, err := guest.AuditQuery(guest.Query{}); return err },
}

// silent are the functions without an error to give: logging and the clock never fail a
// capability, and the register is read by the others.
var silent = []string{"log", "time_now", "result_read", "result_meta"}

// A refusal of any function comes back as the number the host gave, and the capability goes on.
func TestRefusalIsAValue(t *testing.T) { // PF-H13
	if len(everyCall)+len(silent) != len(abi.Functions()) {
		t.Errorf("%d functions are tried, there are %d", len(everyCall)+len(silent), len(abi.Functions()))
	}
	h := guesttest.New(t)
	for name, call := range everyCall {
		if _, ok := abi.FunctionByName(name); !ok {
			t.Errorf("%s is no function of the ABI", name)
		}
		for _, row := range abi.Errnos() {
			h.Deny[name] = row.Errno
			out := within(h, func() {
				err := call()
				var number guest.Errno
				if !errors.Is(err, row.Errno) || !errors.As(err, &number) || number != row.Errno {
					t.Errorf("%s refused with %s: %v", name, row.Name, err)
				}
				delete(h.Deny, name)
				if err := guest.OutputJSON("went on"); err != nil {
					t.Error(err)
				}
			})
			if string(out.Output) != `"went on"` {
				t.Errorf("%s refused with %s: the capability did not go on: %s", name, row.Name, out.Output)
			}
		}
	}
}

func TestHandleReports(t *testing.T) {
	h := guesttest.New(t)
	var result error
	export := func() int32 {
		return guest.Handle(func(struct{}) (string, error) { return "out", result })
	}
	for _, tc := range []struct {
		err           error
		code, message string
	}{
		{guest.Failf("OWN_CODE", "n is %d", 3), "OWN_CODE", "n is 3"},
		{fmt.Errorf("wrapped: %w", guest.Failf("OWN_CODE", "inner")), "OWN_CODE", "inner"},
		{guest.Failf("OWN_CODE", "because: %w", guest.ENOENT), "OWN_CODE", "because: " + guest.ENOENT.Error()},
		{guest.EDENIED, "EDENIED", guest.EDENIED.Error()},
		{fmt.Errorf("reading a: %w", guest.EVERSION), "EVERSION", "reading a: " + guest.EVERSION.Error()},
		{errors.New("something"), "FAILED", "something"},
		{&guest.Failure{Code: "not a code", Message: "m"}, "FAILED", "m"},
		{&guest.Failure{Code: strings.Repeat("X", 65), Message: "m"}, "FAILED", "m"},
		{guest.Failf("LONG", "%s", strings.Repeat("é", 4000)), "LONG", strings.Repeat("é", 2048)},
	} {
		result = tc.err
		out := h.Run(export, "{}")
		if out.Return != 1 || out.Code() != tc.code || out.Failure.Message != tc.message || out.Output != nil || out.OK() {
			t.Errorf("%v: return %d, %+v", tc.err, out.Return, out.Failure)
		}
	}
	if !errors.Is(guest.Failf("X", "because: %w", guest.ENOENT), guest.ENOENT) {
		t.Error("a failure hides its cause")
	}
	result = nil
	if out := h.Run(export, "{}"); !out.OK() || string(out.Output) != `"out"` {
		t.Errorf("success: %+v", out)
	}
	h.Limits.Set("outputBytes", 3)
	if out := h.Run(export, "{}"); out.Code() != "ETOOBIG" {
		t.Errorf("an output over its limit: %+v", out.Failure)
	}
}

func TestInputIsStrict(t *testing.T) {
	h := guesttest.New(t)
	export := func() int32 {
		return guest.Handle(func(in struct {
			N int `json:"n"`
		},
		) (int, error) {
			return in.N, nil
		})
	}
	for _, bad := range []string{``, `{`, `{"n":"1"}`, `{"m":1}`, `{"n":1} x`, `{"n":1}{}`, `[1]`} {
		if out := h.Run(export, bad); out.Code() != "INPUT_INVALID" {
			t.Errorf("%s: %+v", bad, out)
		}
	}
	if out := h.Run(export, ` {"n":1} `); string(out.Output) != "1" {
		t.Errorf("%+v", out.Failure)
	}
}

// Results of every length arrive whole: the register is read in pieces.
func TestLongResults(t *testing.T) {
	h := guesttest.New(t)
	h.Limits.Set("valueBytes", 1<<20)
	for _, n := range []int{0, 1, 255, 256, 257, 4096, 1 << 20} {
		value := strings.Repeat("v", n)
		within(h, func() {
			if err := guest.KV.Put("k", []byte(value)); err != nil {
				t.Fatal(err)
			}
			got, err := guest.KV.Get("k")
			if err != nil || string(got) != value {
				t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
			}
		})
	}
	// A description that is longer than the first piece read.
	h.HTTP = func(guest.Request) (guest.Response, error) {
		return guest.Response{Status: 200, Headers: guest.Headers{"x": strings.Repeat("h", 5000)}}, nil
	}
	within(h, func() {
		resp, err := guest.Fetch(guest.Request{URL: "https://a.example/"})
		if err != nil || len(resp.Headers.Get("X")) != 5000 || len(resp.Body) != 0 {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

// Calls of several goroutines do not take each other's results.
func TestConcurrentCalls(t *testing.T) {
	h := guesttest.New(t)
	const n = 16
	for i := range n {
		h.KV[strconv.Itoa(i)] = []byte(strings.Repeat(strconv.Itoa(i), 1000))
	}
	within(h, func() {
		errs := make(chan error, n)
		for i := range n {
			go func() {
				for range 100 {
					item, err := guest.KV.Item(strconv.Itoa(i))
					if want := strings.Repeat(strconv.Itoa(i), 1000); err != nil || string(item.Value) != want || item.Version == "" {
						errs <- fmt.Errorf("%d: %w, %.20s", i, err, item.Value)
						return
					}
				}
				errs <- nil
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReadAll(t *testing.T) {
	h := guesttest.New(t)
	h.PutFile("f", strings.Repeat("a", 600<<10))
	within(h, func() {
		c, err := guest.Files.Read("f", 0, 10)
		if err != nil || c.EOF || c.Size != 600<<10 {
			t.Errorf("%+v, %v", c, err)
		}
		all, err := guest.Files.ReadAll("f")
		if err != nil || len(all) != 600<<10 {
			t.Errorf("%d bytes, %v", len(all), err)
		}
	})
}

// The SDK's own packages import the standard library, the error numbers and each other.
func TestImports(t *testing.T) {
	const module = "github.com/ecotone-dev/ecotone/"
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			first, _, _ := strings.Cut(name, "/")
			allowed := !strings.Contains(first, ".") || strings.HasPrefix(name, module+"guest") || name == module+"abi/errno" ||
				name == module+"abi" && strings.HasPrefix(path, "guesttest")
			if !allowed || name == "unsafe" || name == "net/http" {
				t.Errorf("%s imports %s", path, name)
			}
			if strings.HasPrefix(path, "core") && (name == "fmt" || name == "encoding/json") {
				t.Errorf("%s imports %s, which a small module must not link", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

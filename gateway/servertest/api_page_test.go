package servertest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// The examples of docs/api.md are executed in their order: each request is sent as it is printed, and
// each answer has what is printed of it.
func TestAPIPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```http\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	if len(blocks) < 20 || len(blocks)%2 != 0 {
		t.Fatalf("the page has %d blocks, which are not pairs", len(blocks))
	}
	g := servertest.Start(t)
	p := &apiPage{t: t, g: g, known: map[string]string{"admin": g.Admin, "invoke": g.Invoke, "operator": g.Operator}}
	p.module = w.Echo(w.Manifest("echo", w.Provide("test:echo.do@1", "run", abi.ReachOwner)))
	for i := 0; i < len(blocks); i += 2 {
		p.example(blocks[i][1], blocks[i+1][1])
	}
}

type apiPage struct {
	t      *testing.T
	g      *servertest.Gateway
	module []byte
	known  map[string]string // by the names that the page gives values
}

var placeholder = regexp.MustCompile(`\$[a-z]+`)

// fill puts known values in the place of their names.
func (p *apiPage) fill(s string) string {
	return placeholder.ReplaceAllStringFunc(s, func(name string) string {
		v, known := p.known[name[1:]]
		if !known {
			p.t.Fatalf("%s is used before an answer said it", name)
		}
		return v
	})
}

// learn compares a value with what the page prints of it, whose names take what stands there.
func (p *apiPage) learn(where, printed, got string) {
	p.t.Helper()
	pattern, names := "", []string{}
	rest := printed
	for _, at := range placeholder.FindAllStringIndex(printed, -1) {
		name := printed[at[0]+1 : at[1]]
		before := printed[len(printed)-len(rest) : at[0]]
		pattern += regexp.QuoteMeta(before)
		if v, known := p.known[name]; known {
			pattern += regexp.QuoteMeta(v)
		} else {
			pattern += "(.+)"
			names = append(names, name)
		}
		rest = printed[at[1]:]
	}
	m := regexp.MustCompile("^" + pattern + regexp.QuoteMeta(rest) + "$").FindStringSubmatch(got)
	if m == nil {
		p.t.Errorf("%s: the page says %s, the server %s", where, printed, got)
		return
	}
	for i, name := range names {
		p.known[name] = m[i+1]
	}
}

func (p *apiPage) example(request, answer string) {
	p.t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, url, _ := strings.Cut(lines[0], " ")
	url = p.fill(url)
	var header []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header = append(header, name, p.fill(value))
	}
	var sent any
	switch body = strings.TrimSpace(body); {
	case body == "@echo.wasm":
		sent = p.module
	case body != "":
		sent = []byte(p.fill(body))
	}
	r := p.g.Do(method, url, "", sent, header...)

	head, body, _ = strings.Cut(answer, "\n\n")
	lines = strings.Split(strings.TrimSpace(head), "\n")
	what := lines[0] + " to " + method + " " + url
	if want := fmt.Sprintf("HTTP/1.1 %d", r.Status); lines[0] != want {
		p.t.Fatalf("%s: the server says %s: %s", what, want, r.Body)
	}
	var printed, got any
	if body = strings.TrimSpace(body); body != "" {
		if err := json.Unmarshal([]byte(body), &printed); err != nil {
			p.t.Fatalf("%s: the page's answer: %v", what, err)
		}
		if err := json.Unmarshal(r.Body, &got); err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		p.within(what, printed, got)
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		p.learn(what+" "+name, value, r.Header.Get(name))
	}
}

// within holds that what is printed is there.
func (p *apiPage) within(where string, printed, got any) {
	p.t.Helper()
	switch printed := printed.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for k, v := range printed {
			p.within(where+" "+k, v, object[k])
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(printed) {
			p.t.Errorf("%s: the page shows %d items, the server %d", where, len(printed), len(list))
			return
		}
		for i, v := range printed {
			p.within(fmt.Sprintf("%s[%d]", where, i), v, list[i])
		}
	case string:
		p.learn(where, printed, fmt.Sprint(got))
	default:
		if got != printed {
			p.t.Errorf("%s: the page says %v, the server %v", where, printed, got)
		}
	}
}

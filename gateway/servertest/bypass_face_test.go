package servertest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

func number(s string) json.Number { return json.Number(s) }

// face is a way in. A new one (MCP, a foreign guest) needs these methods, and every hostile call is
// made through it.
type face interface {
	name() string
	prepare(w *bypass, calls []attempt)
	invoke(t *testing.T, w *bypass, h *attempt) ended
	// own is how many guests the face itself started for a call.
	own(e ended) int64
}

// ended is how a call ended, as its caller and the auditor see it.
type ended struct {
	code abi.Code // it was refused with; "" when it was not
	row  auditRow // of the invocation of the call's capability; empty when it did not become one
	said string   // everything that the caller was told
	own  int64
}

// overHTTP is the data plane.
type overHTTP struct{}

func (overHTTP) name() string               { return "http" }
func (overHTTP) prepare(*bypass, []attempt) {}
func (overHTTP) own(ended) int64            { return 0 }

func (overHTTP) invoke(_ *testing.T, w *bypass, h *attempt) ended {
	var header []string
	if h.declared != "" {
		header = []string{"Ecotone-Classification", h.declared}
	}
	r := w.sessions[h.session()].Invoke(url.PathEscape(h.capability()), []byte(h.body()), header...)
	e := ended{said: string(r.Body)}
	if r.Status == 200 {
		e.row = row(w.g, r)
		return e
	}
	e.code = r.Code()
	var d struct{ AuditID string }
	if r.JSON(&d); r.Status == 202 {
		d.AuditID = r.Waits()
	}
	e.row = recorded(w.g, d.AuditID, e.code)
	return e
}

// recorded is the row of a refusal, whatever it is of; it says the code. Where nobody is known, it
// belongs to no organisation of anybody's.
func recorded(g *servertest.Gateway, id string, code abi.Code) auditRow {
	g.T.Helper()
	if code == abi.CodeUnauthenticated || code == abi.CodeForbidden {
		id += "?org=system"
	}
	at := rowByID(g, id)
	if !bytes.Contains(at.Raw, []byte(`"`+code+`"`)) {
		g.T.Errorf("the row of a refusal with %s says %s", code, at.Raw)
	}
	return at
}

// overCLI is the command line, as a process of its own.
type overCLI struct{ path string }

func (*overCLI) name() string    { return "cli" }
func (*overCLI) own(ended) int64 { return 0 }

func (f *overCLI) prepare(w *bypass, _ []attempt) {
	w.g.T.Helper()
	f.path = filepath.Join(w.g.T.TempDir(), "ecotone")
	if out, err := exec.Command("go", "build", "-o", f.path, "../../cmd/ecotone").CombinedOutput(); err != nil {
		w.g.T.Fatalf("%v: %s", err, out)
	}
}

var (
	saidCode       = regexp.MustCompile(`(?m)^ecotone: error: ([A-Z_]+): `)
	saidAudit      = regexp.MustCompile(`(?m)^audit: (\S+)$`)
	saidInvocation = regexp.MustCompile(`(?m)^invocation (\S+), `)
)

func (f *overCLI) invoke(t *testing.T, w *bypass, h *attempt) ended {
	t.Helper()
	args := []string{"invoke", h.capability(), "--input", h.body()}
	if h.declared != "" {
		args = append(args, "--classification", h.declared)
	}
	cmd := exec.CommandContext(t.Context(), f.path, args...)
	cmd.Env = []string{"ECOTONE_INVOKE=" + w.g.Invoke, "ECOTONE_ADMIN=" + w.g.Admin, "ECOTONE_TOKEN=" + w.sessions[h.session()].Token}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	e := ended{said: stdout.String() + stderr.String()}
	first := func(re *regexp.Regexp) string {
		m := re.FindStringSubmatch(stderr.String())
		if m == nil {
			t.Fatalf("the command says neither how it went nor where that is on record: %q", e.said)
		}
		return m[1]
	}
	if exit == nil {
		e.row = rowByID(w.g, first(saidInvocation))
		return e
	}
	e.code = abi.Code(first(saidCode))
	e.row = recorded(w.g, first(saidAudit), e.code)
	info, _ := e.code.Info()
	want := 1
	if info.Kind == abi.KindPermissionDenied || info.Kind == abi.KindUnauthenticated {
		want = 3
	}
	if e.code == abi.CodeApprovalRequired {
		want = 4
	}
	if got := exit.ExitCode(); got != want || stdout.Len() != 0 {
		t.Errorf("%s: exit code %d, and %q on the standard output", e.code, got, stdout.String())
	}
	return e
}

// overCapability is a biome that calls, with every right of its own: what is refused is not its lack.
type overCapability struct{}

func (overCapability) name() string      { return "capability" }
func (overCapability) own(e ended) int64 { return e.own }

func (overCapability) relay(h *attempt) string { return "relay:" + h.name + ".do@1" }

func (f overCapability) prepare(w *bypass, calls []attempt) {
	w.g.T.Helper()
	environments := []string{"project", "sandbox", "org", "app", "strict"}
	for part := range slices.Chunk(calls, most) {
		name := "relay-" + part[0].name
		var known []abi.CapabilityRef
		var actions []action
		for i := range part {
			h := &part[i]
			if h.outside {
				continue
			}
			if h.ref == "" || strings.HasPrefix(h.ref, "off:") {
				known = append(known, abi.CapabilityRef(h.capability()))
			}
			// As far as the environment admits: the callee's reach is judged, not the relay's.
			reach := max(h.reach, abi.ReachOwner)
			switch {
			case h.session() == "alice@sandbox":
				reach = abi.ReachOwner
			case h.session() != "alice@org":
				reach = min(reach, abi.ReachIntegration)
			}
			actions = append(actions, action{ref: f.relay(h), reach: reach, register: true, steps: []step{do("capability_invoke", h.capability(), h.body())}})
		}
		w.g.Upload(script(name, requires(known...), actions...)).Want(201)
		w.g.Install(name, environments, map[string]any{"calls": known}).Want(200)
		for i := range part {
			if part[i].outside {
				continue
			}
			for _, subject := range []string{"user:alice", "agent:bot"} {
				for _, e := range environments {
					w.g.Grant(subject, f.relay(&part[i]), e)
				}
			}
		}
	}
}

func (f overCapability) invoke(t *testing.T, w *bypass, h *attempt) ended {
	t.Helper()
	var header []string
	if h.declared != "" {
		header = []string{"Ecotone-Classification", h.declared}
	}
	r := w.sessions[h.session()].Invoke(f.relay(h), none, header...)
	e := ended{said: string(r.Body)}
	if r.Status != 200 { // the same was to be said of the caller's own invocation
		e.code = r.Code()
		e.row = row(w.g, r)
		return e
	}
	e.own = 1
	line, made := row(w.g, r).lineCode("capability_invoke")
	if !made {
		t.Fatalf("the relay made no call: %s", row(w.g, r).Raw)
	}
	e.code = line
	if children := childrenOf(w.g, r); len(children) == 1 {
		e.row = rowByID(w.g, children[0].ID)
	} else if len(children) > 1 {
		t.Errorf("%d children", len(children))
	}
	return e
}

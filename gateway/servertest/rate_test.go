package servertest_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// rated is a gateway with an installed echo, and how often may be invoked there.
func rated(t *testing.T, subject, client int64, more ...func(*server.Options)) *servertest.Gateway {
	t.Helper()
	g := servertest.Start(t, more...)
	admit(g, "echo", script("echo", requires("echo:b.do@1"),
		action{ref: "echo:a.do@1", reach: abi.ReachOwner},
		action{ref: "echo:b.do@1", reach: abi.ReachOwner},
		action{ref: "echo:c.call@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "echo:b.do@1", "{}")}},
	), []string{"project"}, map[string]any{"calls": []string{"echo:b.do@1"}})
	setRates(g, subject, client).Want(200)
	return g
}

func setRates(g *servertest.Gateway, subject, client any) servertest.Response {
	g.T.Helper()
	was := g.Control("GET", "/v1/orgs/default/rates", nil).Want(200)
	return g.Control("PUT", "/v1/orgs/default/rates", map[string]any{"subjectPerHour": subject, "clientPerHour": client}, "If-Match", was.Header.Get("ETag"))
}

// X40: the subject's ceiling gives as many invocations as it says, and then RATE_LIMIT_EXCEEDED with how
// long to wait, before the guest starts and before the input is judged; another subject goes on.
func TestSubjectRate(t *testing.T) {
	g := rated(t, 3, 1000)
	for _, s := range []string{"user:ada", "user:bob"} {
		for _, ref := range []string{"echo:a.do@1", "echo:b.do@1"} {
			g.Grant(s, ref, "project")
		}
	}
	ada, bob := g.Open("user:ada", "project", nil), g.Open("user:bob", "project", nil)
	for i := range 3 { // over both capabilities and any number of sessions
		if i == 2 {
			ada = g.Open("user:ada", "project", nil)
		}
		ada.Invoke([]string{"echo:a.do@1", "echo:b.do@1"}[i%2], []byte("{}")).Want(200)
	}
	for _, input := range []string{"{}", `{"not": what the schema`} {
		r := ada.Invoke("echo:a.do@1", []byte(input))
		if input != "{}" && r.Status == 400 {
			continue // not JSON at all: no invocation
		}
		r.Refused(abi.CodeRateExceeded)
		wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if err != nil || wait < 1 || wait > 1200 {
			t.Errorf("Retry-After: %q", r.Header.Get("Retry-After"))
		}
		var doc struct {
			Retry   int `json:"retryAfter"`
			Reasons []struct{ Code abi.Code }
		}
		r.JSON(&doc)
		if doc.Retry != wait || len(doc.Reasons) != 1 || doc.Reasons[0].Code != abi.CodeRateExceeded {
			t.Errorf("%s", r.Body)
		}
	}
	bob.Invoke("echo:a.do@1", []byte("{}")).Want(200)
	// What is refused anyway uses nothing up, and is told nothing of ceilings.
	for range 5 {
		bob.Invoke("echo:c.call@1", []byte("{}")).Refused(abi.CodeMissingGrant)
	}
	bob.Invoke("echo:b.do@1", []byte("{}")).Want(200)
	bob.Invoke("echo:b.do@1", []byte("{}")).Want(200)
	bob.Invoke("echo:b.do@1", []byte("{}")).Refused(abi.CodeRateExceeded)
	// A ceiling that is raised fills the bucket faster from now on, and gives nothing back.
	setRates(g, 3600, 100_000).Want(200)
	if r := ada.Invoke("echo:a.do@1", []byte("{}")).Refused(abi.CodeRateExceeded); r.Header.Get("Retry-After") != "1" {
		t.Errorf("at one a second: Retry-After: %q", r.Header.Get("Retry-After"))
	}
}

// X40: the client's ceiling holds all that comes by one principal, on every door: children too.
func TestClientRate(t *testing.T) {
	g := rated(t, 1000, 4)
	for _, s := range []string{"user:ada", "app:crm"} {
		g.Grant(s, "echo:b.do@1", "project")
		g.Grant(s, "echo:c.call@1", "project")
	}
	ada, crm := g.Open("user:ada", "project", nil), g.Open("app:crm", "project", nil)
	ada.Invoke("echo:b.do@1", []byte("{}")).Want(200)
	crm.Invoke("echo:b.do@1", []byte("{}")).Want(200)
	crm.Invoke("echo:c.call@1", []byte("{}")).Want(200) // and its child: four
	ada.Invoke("echo:b.do@1", []byte("{}")).Refused(abi.CodeRateExceeded)
	crm.Invoke("echo:b.do@1", []byte("{}")).Refused(abi.CodeRateExceeded)
}

// X40: a grant may have a ceiling of its own, over all its uses.
func TestGrantRate(t *testing.T) {
	g := rated(t, 1000, 1000)
	g.Control("POST", "/v1/grants", map[string]any{
		"subject": "user:ada", "capability": "echo:a.do@1", "environment": "environment:project", "rate": map[string]any{"perHour": 2},
	}).Want(201)
	g.Grant("user:ada", "echo:b.do@1", "project")
	ada := g.Open("user:ada", "project", nil)
	ada.Invoke("echo:a.do@1", []byte("{}")).Want(200)
	ada.Invoke("echo:a.do@1", []byte("{}")).Want(200)
	ada.Invoke("echo:a.do@1", []byte("{}")).Refused(abi.CodeRateExceeded)
	// A child uses the subject's grant as well: its second is refused, and the parent sees a failed child.
	g.Control("POST", "/v1/grants", map[string]any{
		"subject": "user:bob", "capability": "echo:b.do@1", "environment": "environment:project", "rate": map[string]any{"perHour": 1},
	}).Want(201)
	g.Grant("user:bob", "echo:c.call@1", "project")
	bob := g.Open("user:bob", "project", nil)
	for i, code := range []abi.Code{"", abi.CodeRateExceeded} {
		r := bob.Invoke("echo:c.call@1", []byte("{}")).Want(200)
		made := childrenOf(g, r)
		if len(made) != 1 || made[0].Decision.Code != code {
			t.Errorf("call %d: the children were decided %+v", i, made)
		}
	}
}

// X40, PF-B7: 0, less, null, nothing and too much are no ceilings; the organisation keeps those it has.
func TestNoRateIsUnlimited(t *testing.T) {
	g := rated(t, 7, 70)
	for _, v := range []any{0, -1, nil, rate.MaxPerHour + 1} {
		setRates(g, v, 70).Refused(abi.CodeUnsupportedRule)
		setRates(g, 7, v).Refused(abi.CodeUnsupportedRule)
	}
	for _, v := range []any{"600", 1.5, true, []int{1}} {
		setRates(g, v, 70).Refused(abi.CodeInvalidJSON)
	}
	etag := g.Control("GET", "/v1/orgs/default/rates", nil).Header.Get("ETag")
	g.Control("PUT", "/v1/orgs/default/rates", map[string]any{}, "If-Match", etag).Refused(abi.CodeUnsupportedRule)
	g.Control("PUT", "/v1/orgs/default/rates", map[string]any{"subjectPerHour": 1, "clientPerHour": 1}).Refused(abi.CodePreconditionNeeded)
	for _, v := range []any{map[string]any{"perHour": 0}, map[string]any{"perHour": -5}, map[string]any{}} {
		g.Control("POST", "/v1/grants", map[string]any{
			"subject": "user:ada", "capability": "echo:a.do@1", "environment": "environment:project", "rate": v,
		}).Refused(abi.CodeUnsupportedRule)
	}
	var now struct{ SubjectPerHour, ClientPerHour int64 }
	g.Control("GET", "/v1/orgs/default/rates", nil).Want(200).JSON(&now)
	if now.SubjectPerHour != 7 || now.ClientPerHour != 70 {
		t.Errorf("the ceilings are %+v now", now)
	}
}

// X40: an organisation begins with the defaults, and what it has survives a restart under others.
func TestRatesArePersisted(t *testing.T) {
	g := servertest.Start(t, func(o *server.Options) { o.SubjectRate, o.ClientRate = 0, 0 })
	var now struct{ SubjectPerHour, ClientPerHour int64 }
	g.Control("GET", "/v1/orgs/default/rates", nil).Want(200).JSON(&now)
	if now.SubjectPerHour != rate.DefaultSubject || now.ClientPerHour != rate.DefaultClient {
		t.Errorf("a new organisation begins with %+v", now)
	}
	setRates(g, 5, 50).Want(200)
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir), func(o *server.Options) { o.SubjectRate, o.ClientRate = 9, 90 })
	g.Control("GET", "/v1/orgs/default/rates", nil).Want(200).JSON(&now)
	if now.SubjectPerHour != 5 || now.ClientPerHour != 50 {
		t.Errorf("after a restart it has %+v", now)
	}
	g.Control("POST", "/v1/orgs", map[string]any{"id": "acme"}).Want(201)
	g.Control("GET", "/v1/orgs/acme/rates", nil).Want(200).JSON(&now)
	if now.SubjectPerHour != 9 || now.ClientPerHour != 90 {
		t.Errorf("one made since begins with %+v", now)
	}
}

// Explaining uses nothing of what it explains, and has an allowance of its own.
func TestExplainPeeks(t *testing.T) {
	g := rated(t, 3, 1000)
	g.Grant("user:ada", "echo:a.do@1", "project")
	ada := g.Open("user:ada", "project", nil)
	for range 3 {
		ada.Explain("echo:a.do@1", []byte("{}")).Want(200)
	}
	r := ada.Explain("echo:a.do@1", []byte("{}")).Refused(abi.CodeRateExceeded)
	if r.Header.Get("Retry-After") == "" {
		t.Error("it does not say how long to wait")
	}
	for range 3 {
		ada.Invoke("echo:a.do@1", []byte("{}")).Want(200)
	}
	ada.Invoke("echo:a.do@1", []byte("{}")).Refused(abi.CodeRateExceeded)
	other := g.Open("user:ada", "project", nil) // the allowance to ask is the session's
	var e struct {
		Code   abi.Code
		Checks []struct{ Check, State string }
	}
	other.Explain("echo:a.do@1", []byte("{}")).Want(200).JSON(&e)
	if e.Code != abi.CodeRateExceeded {
		t.Errorf("explain answers %q: %+v", e.Code, e.Checks)
	}
}

// failingLimiter is a limiter that can be made not to answer.
type failingLimiter struct {
	rate.Limiter
	off atomic.Bool
}

func (b *failingLimiter) Take(ctx context.Context, asks []rate.Ask) (time.Duration, error) {
	if b.off.Load() {
		return 0, errors.New("the limiter's store is gone")
	}
	return b.Limiter.Take(ctx, asks)
}

func (b *failingLimiter) Peek(ctx context.Context, asks []rate.Ask) (time.Duration, error) {
	if b.off.Load() {
		return 0, errors.New("the limiter's store is gone")
	}
	return b.Limiter.Peek(ctx, asks)
}

// X41: a limiter that cannot answer lets nothing through, of callers and of guests, and no guest starts.
func TestLimiterOutage(t *testing.T) {
	limiter := &failingLimiter{}
	g := rated(t, 1000, 1000, func(o *server.Options) {
		o.Limiter = func(l rate.Limiter) rate.Limiter { limiter.Limiter = l; return limiter }
	})
	g.Grant("user:ada", "echo:b.do@1", "project")
	g.Grant("user:ada", "echo:c.call@1", "project")
	ada := g.Open("user:ada", "project", nil)
	ada.Invoke("echo:c.call@1", []byte("{}")).Want(200)
	before := g.Server.Started()
	limiter.off.Store(true)
	for i := range 3 {
		r := ada.Invoke([]string{"echo:b.do@1", "echo:c.call@1"}[i%2], []byte("{}")).Refused(abi.CodeRateUnavailable)
		if row := row(g, r); row.Decision.Code != abi.CodeRateUnavailable {
			t.Errorf("the row says %+v", row.Decision)
		}
	}
	ada.Explain("echo:b.do@1", []byte("{}")).Refused(abi.CodeRateUnavailable)
	if now := g.Server.Started(); now != before {
		t.Errorf("%d guests started without a limiter", now-before)
	}
	limiter.off.Store(false)
	ada.Invoke("echo:b.do@1", []byte("{}")).Want(200)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/peer"
)

// change is something that is done to the gateway again and again beside the load.
type change struct {
	pause time.Duration
	do    func(ctx context.Context, n int) error
	n     int
}

// every does it until the time is over.
func (c *change) every(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; c.n++ {
		if err := c.do(ctx, c.n); err != nil {
			return err
		}
		select {
		case <-time.After(min(c.pause, max(0, time.Until(end)))):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (t *traffic) changes() []*change {
	if t.list == nil {
		t.list = []*change{
			{pause: 300 * time.Millisecond, do: t.comeAndGo},
			{pause: 700 * time.Millisecond, do: t.uploadRefused},
			{pause: 500 * time.Millisecond, do: t.cancel},
			{pause: 400 * time.Millisecond, do: t.leave},
		}
	}
	return t.list
}

func (t *traffic) count(kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.did[kind]++
}

// churned is a biome that comes and goes.
type churned struct {
	biome, ref string
	module     []byte
}

func (t *traffic) addChurn(context.Context) error {
	for i := range 6 {
		biome, ref := numbered(i)
		t.churn = append(t.churn, churned{biome, ref, peer.Echo(biome, ref, 60<<10)})
	}
	return nil
}

// comeAndGo takes a biome from its upload to its removal: admitted, granted, invoked in a session
// that is closed, revoked, removed.
func (t *traffic) comeAndGo(ctx context.Context, n int) error {
	c, g := t.churn[n%len(t.churn)], t.g
	if err := g.install(ctx, "churn", c.biome, c.module); err != nil {
		return err
	}
	var given struct{ ID string }
	err := g.do(ctx, "POST", "/v1/grants?org=churn", map[string]any{"subject": "user:churn", "capability": c.ref, "environment": "environment:project"}, &given)
	if err != nil {
		return err
	}
	var opened struct {
		Token string
		Of    struct{ ID string }
	}
	err = g.do(ctx, "POST", "/v1/sessions?org=churn", map[string]any{"subject": "user:churn", "environment": "environment:project"}, &opened)
	if err != nil {
		return err
	}
	if status, body, err := t.ask(ctx, "/v1/invoke/"+c.ref, opened.Token, `{}`); err != nil || status != http.StatusOK && status != http.StatusTooManyRequests {
		return fmt.Errorf("%s, just admitted: %d %s, %w", c.ref, status, body, err)
	}
	for _, path := range []string{"/v1/sessions/" + opened.Of.ID, "/v1/grants/" + given.ID} {
		if err := g.do(ctx, "DELETE", path+"?org=churn", nil, nil); err != nil {
			return err
		}
	}
	install := "/v1/installs/" + c.biome + "?org=churn"
	tag, err := g.tagged(ctx, "GET", install, nil, nil)
	if err != nil {
		return err
	}
	if err := g.do(ctx, "DELETE", install, nil, nil, "If-Match", tag); err != nil {
		return err
	}
	t.count("biomes came and went")
	return nil
}

// uploadRefused uploads a module that must not be admitted.
func (t *traffic) uploadRefused(ctx context.Context, n int) error {
	m := t.refused[n%len(t.refused)]
	err := t.g.do(ctx, "POST", "/v1/biomes?org=hostile", m.Bytes(), nil)
	if err == nil {
		return fmt.Errorf("%s was admitted", m.Name)
	}
	if ctx.Err() == nil && !strings.Contains(err.Error(), ": 4") {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	t.count("uploads refused")
	return ctx.Err()
}

const soakSpin = "bench:spin.run@1"

func (t *traffic) addSpin(ctx context.Context) (err error) {
	t.spin, err = t.g.allow(ctx, "hostile", "spin", soakSpin, peer.Spin("spin", soakSpin))
	return err
}

// cancel starts an invocation that does not end, finds it in the audit, cancels it and waits for
// its answer.
func (t *traffic) cancel(ctx context.Context, _ int) error {
	ctx, done := context.WithTimeout(ctx, 30*time.Second)
	defer done()
	before, err := t.newest(ctx)
	if err != nil {
		return err
	}
	type answer struct {
		status int
		body   string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		a.status, a.body, a.err = t.ask(ctx, "/v1/invoke/"+soakSpin, t.spin, `{}`, "Ecotone-Deadline-Ms", "900")
		answered <- a
	}()
	for {
		select {
		case a := <-answered: // its fuel or its time was over before it was found, or no place was free
			if a.err == nil && a.status == http.StatusOK {
				return errors.New("an endless loop was answered")
			}
			return a.err
		case <-time.After(5 * time.Millisecond):
		}
		id, err := t.newest(ctx)
		if err != nil {
			return err
		}
		if id == before {
			continue
		}
		status, body, err := t.ask(ctx, "/v1/invocations/"+id+":cancel", t.spin, "")
		if err != nil {
			return err
		}
		a := <-answered
		switch {
		case a.err != nil:
			return a.err
		case status == http.StatusAccepted && strings.Contains(a.body, "CANCELED"):
			t.count("invocations cancelled")
		case status == http.StatusAccepted, status == http.StatusConflict, status == http.StatusNotFound: // it ended by itself meanwhile
		default:
			return fmt.Errorf("cancelling: %d %s", status, body)
		}
		return nil
	}
}

// newest is the last invocation of the endless loop in the audit, or "".
func (t *traffic) newest(ctx context.Context) (string, error) {
	var page struct {
		Items []struct {
			AuditID string `json:"auditId"`
		}
	}
	err := t.g.do(ctx, "GET", "/v1/audit?org=hostile&kind=invocation&limit=1&capability="+soakSpin, nil, &page)
	if err != nil || len(page.Items) == 0 {
		return "", err
	}
	return page.Items[0].AuditID, nil
}

// leave sends a request that takes long, and hangs up.
func (t *traffic) leave(ctx context.Context, n int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.g.Invoke)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := t.good[n%len(t.good)]
	if n%3 > 0 {
		r = t.hostile[n%len(t.hostile)]
	}
	if n%5 == 0 {
		r = r[:len(r)/2]
	}
	if _, err := conn.Write(r); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	t.count("callers left")
	return nil
}

// ask sends one request to the data plane.
func (t *traffic) ask(ctx context.Context, path, token, body string, header ...string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+t.g.Invoke+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := control.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, string(raw), err
}

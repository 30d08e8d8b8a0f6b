package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// The steps between a bare echo and the gateway. Each is the same fasthttp server with the
// product's own parts behind it, one guarantee more than the one before.
const (
	stepGuest    = "guest"    // the guest, state kept from call to call
	stepMetered  = "metered"  // rewritten, and paid for
	stepBoundary = "boundary" // its host functions are the boundary's: budgets, labels, receipt
	stepRestored = "restored" // a whole invocation of the host: state as after initialisation
	stepPolicy   = "policy"   // token, session, gate, schema and authority for each request
)

// answerer answers the body of one request; it is called by many goroutines.
type answerer func(c *fasthttp.RequestCtx) ([]byte, error)

func childStep(step, dir string) error {
	a, closeAll, err := makeStep(context.Background(), step, dir)
	if err != nil {
		return err
	}
	return errors.Join(serveHandler(func(c *fasthttp.RequestCtx) {
		out, err := a(c)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			c.Error("failed", http.StatusInternalServerError)
			return
		}
		c.SetBody(out)
	}), closeAll())
}

func makeStep(ctx context.Context, step, dir string) (answerer, func() error, error) {
	module := peer.Echo("echo", echoRef, 60<<10)
	p, err := allowed("00")
	if err != nil {
		return nil, nil, err
	}
	switch step {
	case stepGuest:
		return keptStep(ctx, module, false, nil)
	case stepMetered:
		return keptStep(ctx, module, true, nil)
	case stepBoundary:
		return keptStep(ctx, module, true, p.Authority())
	}
	h, err := peer.NewHost(ctx, filepath.Join(dir, "host"))
	if err != nil {
		return nil, nil, err
	}
	closeHost := func() error { h.Close(); return nil }
	if err := h.Admit(ctx, module); err != nil {
		return nil, nil, errors.Join(err, closeHost())
	}
	switch step {
	case stepRestored:
		c, err := h.Fresh(&peer.Guest{Ecotone: module, Export: "run"})
		return func(rc *fasthttp.RequestCtx) ([]byte, error) { return c.Call(ctx, copied(rc)) }, closeHost, err
	case stepPolicy:
		a, closePolicy, err := policyStep(ctx, h, dir)
		if err != nil {
			return nil, nil, errors.Join(err, closeHost())
		}
		return a, func() error { return errors.Join(closeHost(), closePolicy()) }, nil
	}
	return nil, nil, errors.Join(fmt.Errorf("no such step: %s", step), closeHost())
}

// allowed is the policy under which the steps that do not decide run.
func allowed(digest string) (*peer.Policy, error) {
	p := peer.NewPolicy(digest, &abi.Descriptor{Ref: echoRef, Export: "run", Reach: abi.ReachOwner, OutputClassification: abi.Public})
	if p.Authority() == nil {
		return nil, errors.New("the gate refuses the benchmark's own policy")
	}
	return p, nil
}

// copied is the request's body, outliving the request as the gateway's is.
func copied(c *fasthttp.RequestCtx) []byte { return append([]byte(nil), c.PostBody()...) }

// keptStep lends kept instances, a few for each processor.
func keptStep(ctx context.Context, module []byte, metered bool, a *authority.Authority) (answerer, func() error, error) {
	n := 2 * runtime.GOMAXPROCS(0)
	idle := make(chan *peer.Kept, n)
	closeAll := func() error {
		for range len(idle) {
			(<-idle).Close()
		}
		return nil
	}
	for range n {
		k, err := peer.NewKept(ctx, module, "run", metered, a)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		idle <- k
	}
	return func(c *fasthttp.RequestCtx) ([]byte, error) {
		k := <-idle
		defer func() { idle <- k }()
		return k.Call(ctx, copied(c))
	}, closeAll, nil
}

// policyStep decides each request by the records a gateway left in dir. It is the pipeline's own
// order, without its audit, its places and its answer headers.
func policyStep(ctx context.Context, h *peer.Host, dir string) (answerer, func() error, error) {
	st, err := badger.Open(dir, false)
	if err != nil {
		return nil, nil, err
	}
	p, err := policy.Open(ctx, st, policy.Options{Rates: gate.Rates{Subject: rate.MaxPerHour, Client: rate.MaxPerHour}})
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	cat, schemas, limiter := &catalogue.Stored{Store: st}, schema.NewCache(16), rate.NewLocal()
	return func(c *fasthttp.RequestCtx) ([]byte, error) {
		token, _ := strings.CutPrefix(string(c.Request.Header.Peek("Authorization")), "Bearer ")
		sess, err := p.Invoker(token)
		if err != nil {
			return nil, err
		}
		ref, err := abi.ParseCapabilityRef(strings.TrimPrefix(string(c.Path()), "/v1/invoke/"))
		if err != nil {
			return nil, err
		}
		input, snapshot := copied(c), p.Snapshot()
		facts := p.Facts(ctx, cat, snapshot, sess, ref, 0)
		d := gate.Decide(snapshot, facts)
		if d.Pending == gate.CheckRate {
			var room [gate.MaxBuckets]rate.Ask
			facts.Rate = gate.Exceeded
			if wait, err := limiter.Take(ctx, gate.Buckets(room[:0], snapshot, facts, &d)); err == nil && wait == 0 {
				facts.Rate = gate.Within
			}
			d = gate.Decide(snapshot, facts)
		}
		if d.Pending == gate.CheckSchema {
			s, err := schemas.Compile(d.Descriptor.InputSchema)
			if err == nil {
				err = s.Validate(input)
			}
			if err != nil {
				return nil, err
			}
			facts.Schema = gate.Satisfied
			d = gate.Decide(snapshot, facts)
		}
		if denied := d.Err(); denied != nil {
			return nil, denied
		}
		a := p.Authorize(snapshot, facts, &d, session.NewID(facts.Now), facts.Now.Add(time.Minute), nil)
		if a == nil {
			return nil, errors.New("the session was closed")
		}
		return h.Run(ctx, a, input)
	}, st.Close, nil
}

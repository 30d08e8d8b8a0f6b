package main

import (
	"context"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
)

const groupHTTP = "Over HTTP, everything on, against a bare fasthttp echo"

// server is one of the servers under comparison, and the request it gets.
type target struct {
	name    string
	serving *serving
	gateway *gateway // nil: the bare echo
	mode    mode     // of a gateway
	request load.Request
}

// line is the servers under comparison, the bare echo first and then a gateway for each of the
// audit's modes.
type line []*target

func startLine(ctx context.Context, b *bench) (l line, closeAll func(), err error) {
	l = line{{name: "bare echo"}}
	for _, m := range modes {
		l = append(l, &target{name: "gateway, " + m.String(), mode: m})
	}
	closeAll = func() {
		var all []*serving
		for _, t := range l {
			all = append(all, t.serving)
		}
		stopAll(all)
	}
	var group errgroup.Group
	for _, t := range l[1:] {
		group.Go(func() error {
			g, token, err := echoGateway(ctx, filepath.Join(b.dir, "http-"+t.mode.name), b, "-audit", t.mode.name)
			if err != nil {
				return err
			}
			t.gateway, t.serving, t.request = g, g.serving, g.post(echoRef, token, b.built.small.Input)
			return nil
		})
	}
	group.Go(func() (err error) { l[0].serving, err = serve(ctx, "echo"); return err })
	if err := group.Wait(); err != nil {
		return l, closeAll, err
	}
	// The bytes of the gateways' request, to another port.
	l[0].request = l[0].serving.post(echoRef, "eco_s_of_the_same_length_as_a_session_token_has_which_is_about_this", b.built.small.Input)
	return l, closeAll, nil
}

// inTurn is the order of a round: forward and backward in turn.
func (l line) inTurn(round int) line {
	out := make(line, 0, len(l))
	for i := range l {
		if round%2 == 1 {
			i = len(l) - 1 - i
		}
		out = append(out, l[i])
	}
	return out
}

func measureHTTP(ctx context.Context, b *bench) error {
	l, closeAll, err := startLine(ctx, b)
	defer closeAll()
	if err != nil {
		return err
	}
	if err := closedLoop(ctx, b, l); err != nil {
		return err
	}
	if err := openLoop(ctx, b, l); err != nil {
		return err
	}
	return inputSizes(ctx, b, l)
}

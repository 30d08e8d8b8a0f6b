package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// BiomeLintCmd says what admission would say.
type BiomeLintCmd struct{ source }

// Run admits the biome to a host of its own, as a server with the default limits would: it is read,
// validated, metered and compiled in the confined child, and its initialiser is tried without authority.
// What only a server knows, names and capabilities that are taken, is not asked. The exit code is 1 for
// a biome that would be refused.
func (c *BiomeLintCmd) Run(e *Env) error {
	biome, err := c.biome(e)
	if err != nil {
		return err
	}
	report, err := admit(e.ctx, biome)
	if err != nil {
		return err
	}
	return e.judged(report)
}

// admit returns what admission says of a biome; the error is none of the biome's doing.
func admit(ctx context.Context, biome wasm.Original) (report *admission.Report, err error) {
	dir, err := os.MkdirTemp("", "ecotone-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	h, err := host.New(ctx, host.Options{
		Dir: dir, Key: key, Limits: abi.DefaultLimits(), Schema: checkSchema,
		Source: func(context.Context, string) (wasm.Original, error) { return biome, nil },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	report, err = h.Admit(ctx, biome)
	if abi.CodeOf(err) == abi.CodeModuleRefused {
		err = nil
	}
	return report, err
}

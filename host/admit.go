package host

import (
	"context"
	"encoding/hex"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Inspect reads a module and its manifest and says all that is wrong with them. It runs and
// compiles nothing; [Host.Admit] begins with it.
func (h *Host) Inspect(biome wasm.Original) *admission.Report { return h.inspector.Inspect(biome) }

// Admit does to a module all that happens before it can ever run: inspect it, validate and
// compile it in a confined child, and try its initialiser once, in a throwaway instance
// without authority. The report is there whenever the module could be read, and lists what
// was found; the error is nil only for a module that may be stored. A module's own fault is a
// problem of the report and MODULE_REFUSED; other codes are the host's (OVERLOADED,
// COMPILE_LIMIT, CANCELED …).
//
// Nothing is stored but the compiled form, under the report's digest.
func (h *Host) Admit(ctx context.Context, biome wasm.Original) (*admission.Report, error) {
	report := h.inspector.Inspect(biome)
	if err := report.Err(); err != nil {
		return report, err
	}
	digest, err := compileDigest(report.Digest)
	if err != nil {
		return report, err
	}
	prepared, err := h.prepare(biome.Module, report.Module, report.Manifest)
	if err != nil {
		return refuse(report, err)
	}
	bare, err := wasm.StripCustom(biome.Module, nil)
	if err != nil {
		return report, abi.Errorf(abi.CodeInternal, "the module lost its sections: %w", err)
	}
	artifact, err := h.compiler.CompileRewritten(ctx, digest, bare, prepared.module)
	if err != nil {
		return refuse(report, err)
	}
	fresh, err := h.try(ctx, artifact, prepared)
	if err != nil {
		_ = h.compiler.Forget(digest)
		return refuse(report, err)
	}
	if fresh != "" && report.Manifest.Freeze != abi.FreezeNever {
		report.Warnings = append(report.Warnings, admission.Warning{
			Topic: "fresh-instances", Message: "each invocation initialises the module anew: " + fresh, Hint: freezeHint,
		})
	}
	return report, nil
}

const freezeHint = "invocations are faster from a frozen image; when only randomness and time stand against it, " +
	`"freeze": "seeded" accepts that what the initialiser got of them is the same in many invocations`

// try runs the initialiser of a module that was just compiled, and says why its instances
// cannot be kept, if they cannot.
func (h *Host) try(ctx context.Context, artifact *compile.Artifact, p *prepared) (fresh string, err error) {
	select {
	case h.trial <- struct{}{}:
		defer func() { <-h.trial }()
	case <-ctx.Done():
		return "", boundary.Ended(ctx)
	}
	image, err := loadImage(ctx, artifact, p)
	if err != nil {
		return "", err
	}
	defer image.Close(context.WithoutCancel(ctx))
	limits := admission.UploadLimits(h.limits)
	if err := h.engine.Trial(ctx, image, &limits, trialWall); err != nil {
		return "", err
	}
	return image.FreshBecause(), nil
}

// faults of the module itself, which belong into its report.
var faults = map[abi.Code]bool{
	abi.CodeModuleInvalid:    true,
	abi.CodeModuleLimit:      true, // when it is metered
	abi.CodeCompileFailed:    true,
	abi.CodeCompileLimit:     true,
	abi.CodeInitializeFailed: true,
	abi.CodeMemoryLimit:      true,
	abi.CodeExportMissing:    true,
}

func refuse(report *admission.Report, err error) (*admission.Report, error) {
	e := abi.AsError(err)
	if !faults[e.Code] {
		return report, e
	}
	report.Accepted = false
	report.Problems = append(report.Problems, admission.Problem{Code: e.Code, Message: e.Message, Hint: e.Hint})
	return report, report.Err().WithCause(e)
}

// load is what fills the cache of images: bytes from the source, code from the compile cache.
func (h *Host) load(ctx context.Context, digest string) (*engine.Image, int64, error) {
	d, err := compileDigest(digest)
	if err != nil {
		return nil, 0, err
	}
	artifact, err := h.compiler.Load(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	p, err := h.admitted(ctx, digest)
	if err != nil {
		return nil, 0, err
	}
	image, err := loadImage(ctx, artifact, p)
	return image, imageBytes(artifact, p), err
}

// imageBytes estimates what a loaded module takes: its code, its bytes, which the engine keeps with
// what it decoded of them, and the host functions it is linked to.
func imageBytes(artifact *compile.Artifact, p *prepared) int64 {
	const fixed, decoded = 128 << 10, 2
	return fixed + int64(artifact.Size()) + (1+decoded)*int64(len(p.module))
}

func loadImage(ctx context.Context, artifact *compile.Artifact, p *prepared) (*engine.Image, error) {
	runtime, compiled, err := compile.LoadModule(ctx, compile.RuntimeConfig(), artifact, p.module)
	if err != nil {
		return nil, err
	}
	image, err := engine.NewImage(ctx, runtime, compiled, p.face)
	if err != nil {
		return nil, err
	}
	image.Keep(p.keeping)
	return image, nil
}

// compileDigest is the name of a biome's compiled form: the biome's digest, which covers the
// module. Two organisations with the same bytes share the file and nothing that is loaded.
func compileDigest(digest string) (compile.Digest, error) {
	var d compile.Digest
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != len(d) {
		return d, abi.Errorf(abi.CodeNotFound, "%s is not the digest of a biome", abi.Quote(digest))
	}
	return compile.Digest(raw), nil
}

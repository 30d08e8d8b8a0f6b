package files

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Versions looks at a workspace's files on nobody's behalf, to see later whether they are the same: of each
// path the version of the file there, or "" when there is none that a reader with the ceiling may know
// of. What is not a path of a workspace is left out. label is the join of all that was looked at. A
// workspace that was not made yet has no files.
func (s *Service) Versions(ctx context.Context, workspace string, ceiling abi.Classification, paths []string) (versions map[string]string, label abi.Classification, err error) {
	look := &onlooker{ceiling: ceiling, label: abi.Public}
	w, release, err := s.acquire(ctx, workspace)
	if abi.CodeOf(err) == abi.CodeNotFound {
		w, err = nil, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if w != nil {
		defer release()
		if err := w.gate.Acquire(ctx, int64(reads)); err != nil {
			return nil, 0, contextError(ctx)
		}
		defer w.gate.Release(int64(reads))
	}
	versions = map[string]string{}
	for _, name := range paths {
		p, err := Clean(name)
		if err != nil || p == RootPath {
			continue
		}
		versions[p] = ""
		if w == nil {
			continue
		}
		if versions[p], err = s.version(ctx, w, look, p); err != nil {
			return nil, 0, err
		}
	}
	return versions, look.label, nil
}

// version is that of one file, or "".
func (s *Service) version(ctx context.Context, w *workspace, look *onlooker, p string) (string, error) {
	c := &call{ctx: ctx, s: boundary.Scope{Flow: look}, spec: &authority.Spec{Ceiling: look.ceiling}, svc: s, w: w}
	defer func() {
		for _, r := range c.roots {
			r.Close()
		}
	}()
	sp, err := c.existing(p)
	switch {
	case err == nil:
		return sp.rec.Version, nil
	case abi.CodeOf(err) == abi.CodeFileNotFound, abi.CodeOf(err) == abi.CodeNotRegular:
		return "", nil
	}
	return "", err
}

// onlooker is the flow of who only looks. It serves one goroutine.
type onlooker struct{ ceiling, label abi.Classification }

// Observe implements [boundary.Flow].
func (o *onlooker) Observe(source abi.Classification) *abi.Error {
	if !o.ceiling.Valid() || source > o.ceiling {
		return abi.Errorf(abi.CodeClassificationCeiling, "above the ceiling")
	}
	o.label = abi.Join(o.label, source)
	return nil
}

// Emit implements [boundary.Flow]: nothing is written.
func (o *onlooker) Emit(abi.Classification) *abi.Error {
	return abi.Errorf(abi.CodeClassificationFlow, "nothing is written")
}

// Label implements [boundary.Flow].
func (o *onlooker) Label() abi.Classification { return o.label }

var _ boundary.Flow = (*onlooker)(nil)

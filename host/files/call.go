package files

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// call is one host call on one workspace. It serves one goroutine.
type call struct {
	ctx   context.Context
	s     boundary.Scope
	spec  *authority.Spec
	svc   *Service
	w     *workspace
	grant glob.Sets
	shown [abi.Regulated + 1]bool // labels the invocation was raised to in this call
	roots []*os.Root              // opened on the way, closed at the end
}

// access says what a call does to the workspace.
type access int64

const (
	reads  access = 1
	writes access = everyone
)

// enter begins a call: the workspace is open and its gate is held until leave.
func (s *Service) enter(ctx context.Context, sc boundary.Scope, a access) (*call, func(), error) {
	if sc.Authority == nil || sc.Flow == nil {
		return nil, nil, abi.Errorf(abi.CodeGrantRevoked, "no authority")
	}
	spec := sc.Authority.Spec()
	if spec.Workspace == "" {
		return nil, nil, noWorkspace(nil)
	}
	w, release, err := s.acquire(ctx, spec.Workspace)
	if err != nil {
		return nil, nil, err
	}
	if err := w.gate.Acquire(ctx, int64(a)); err != nil {
		release()
		return nil, nil, contextError(ctx)
	}
	c := &call{ctx: ctx, s: sc, spec: spec, svc: s, w: w, grant: spec.Resources}
	return c, func() {
		for _, r := range c.roots {
			r.Close()
		}
		w.gate.Release(int64(a))
		release()
	}, nil
}

// observe raises the invocation to a label; false is above the ceiling, and noted as
// withheld.
func (c *call) observe(label abi.Classification) bool {
	label = label.Source()
	if !c.shown[label] {
		c.shown[label] = c.s.Flow.Observe(label) == nil && c.spec.Ceiling.Valid() && label <= c.spec.Ceiling
	}
	return c.shown[label]
}

// visible reports whether a label is within the invocation's ceiling, and notes it as
// withheld if not. It raises nothing: labels are fixed when objects are made, and no guest
// chooses one by its data.
func (c *call) visible(label abi.Classification) bool {
	if c.spec.Ceiling.Valid() && label.Source() <= c.spec.Ceiling {
		return true
	}
	return c.observe(label)
}

// emit asks whether the invocation may write to something labelled so.
func (c *call) emit(label abi.Classification) error {
	if err := c.s.Flow.Emit(label.Sink()); err != nil {
		return err
	}
	return nil
}

// names asks whether the grant names a path.
func (c *call) names(p string) error {
	if c.grant.Match(globName(p)) {
		return nil
	}
	return abi.Errorf(abi.CodeResourceNotInGlob, "the grant does not name this file").
		WithHint("the resource globs of the grant say which files the capability may use")
}

// globName is what globs see of a canonical path.
func globName(p string) string {
	if p == RootPath {
		return ""
	}
	return p
}

// alive is asked before something changes.
func (c *call) alive() error {
	if c.ctx.Err() != nil {
		return contextError(c.ctx)
	}
	if err := c.s.Authority.Current(); err != nil {
		return err
	}
	return nil
}

func (c *call) reader() Reader {
	return Reader{Session: c.spec.Session, Workspace: c.spec.Workspace}
}

// standing says what a path leads to, as far as the invocation may know.
type standing uint8

const (
	absent  standing = iota
	hidden           // there, or below something that is there, and above the ceiling
	foreign          // there, and nothing guests may use; or below such a thing
	file
	directory
)

// spot is where a path leads.
type spot struct {
	path  string
	name  string   // last component
	dir   *os.Root // where the name is, or the first missing directory would be
	at    string   // path of dir
	label abi.Classification
	// missing are the directories between dir and the name that are not there.
	missing []string
	is      standing
	info    fs.FileInfo
	rec     *Record // of a file, a directory, or what is hidden at the very path
}

// find walks to a canonical path. It raises the invocation to every directory on the way
// and to nothing at the end of it.
func (c *call) find(p string) (*spot, error) {
	root := c.w.record(RootPath)
	sp := &spot{path: p, dir: c.w.root, at: RootPath, label: root.Label, is: hidden}
	if p == RootPath {
		if c.visible(root.Label) {
			sp.is, sp.rec = directory, root
		}
		return sp, nil
	}
	names := strings.Split(p, "/")
	sp.name = names[len(names)-1]
	if !c.observe(root.Label) {
		return sp, nil
	}
	for i, name := range names {
		here := path.Join(sp.at, name)
		last := i == len(names)-1
		info, err := sp.dir.Lstat(name)
		switch {
		case isAbsent(err):
			if c.w.record(here) != nil {
				c.w.set(here, nil) // removed behind our back
			}
			sp.is, sp.missing = absent, names[i:len(names)-1]
			return sp, nil
		case err != nil:
			return nil, diskError(err)
		}
		if c.w.foreign(info) {
			if c.observe(c.w.imports) {
				sp.is = foreign
			}
			return sp, nil
		}
		rec := c.w.settle(here, info)
		if last {
			sp.info, sp.rec = info, rec
			switch {
			case !c.visible(rec.Label):
			case rec.Directory:
				sp.is = directory
			default:
				sp.is = file
			}
			return sp, nil
		}
		if !c.observe(rec.Label) {
			return sp, nil
		}
		if !rec.Directory {
			sp.is = foreign
			return sp, nil
		}
		sub, err := enter(sp.dir, name, info)
		switch {
		case errors.Is(err, errSwapped), isAbsent(err), errors.Is(err, fs.ErrPermission):
			sp.is = foreign
			return sp, nil
		case err != nil:
			return nil, diskError(err)
		}
		c.roots = append(c.roots, sub)
		sp.dir, sp.at, sp.label = sub, here, rec.Label
	}
	return sp, nil // names is never empty
}

// existing finds a path that must lead to a file the invocation may know of, and raises
// the invocation to its label.
func (c *call) existing(p string) (*spot, error) {
	sp, err := c.find(p)
	if err != nil {
		return nil, err
	}
	switch sp.is {
	case absent, hidden:
		return sp, errAbsent()
	case file:
		if !c.observe(sp.rec.Label) {
			return sp, errAbsent()
		}
		return sp, nil
	case directory:
		if !c.observe(sp.rec.Label) {
			return sp, errAbsent()
		}
	}
	return sp, errNotRegular()
}

// open opens the directory a spot leads to.
func (c *call) open(sp *spot) (*os.Root, error) {
	if sp.path == RootPath {
		return c.w.root, nil
	}
	sub, err := enter(sp.dir, sp.name, sp.info)
	switch {
	case errors.Is(err, errSwapped), isAbsent(err), errors.Is(err, fs.ErrPermission):
		return nil, errNotRegular()
	case err != nil:
		return nil, diskError(err)
	}
	c.roots = append(c.roots, sub)
	return sub, nil
}

// meta renders what a call says beside its body.
func meta(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("files: a document that does not marshal: " + err.Error())
	}
	return b
}

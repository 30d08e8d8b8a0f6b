package files

import (
	"bytes"
	"context"
	"path"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// written is what a call that wrote a file says.
type written struct {
	Version        string             `json:"version"`
	Size           int64              `json:"size"`
	Classification abi.Classification `json:"classification"`
	Count          *int               `json:"count,omitempty"`
}

func (r *Record) written() written {
	return written{Version: r.Version, Size: r.Size, Classification: r.Label}
}

// change runs a call that writes at one path.
func (s *Service) change(ctx context.Context, sc boundary.Scope, name string, size int, fn func(c *call, p string, res *boundary.Result) error) (boundary.Result, error) {
	p, err := Clean(name)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: p}
	c, leave, err := s.enter(ctx, sc, writes)
	if err != nil {
		return res, err
	}
	defer leave()
	if err := c.names(p); err != nil {
		return res, err
	}
	if limit := c.spec.Limits.Get(abi.LimitFileBytes); int64(size) > limit {
		return res, errTooLarge(limit)
	}
	err = fn(c, p, &res)
	return res, err
}

// Create makes a file that must not be there, and the directories above it (M5).
func (s *Service) Create(ctx context.Context, sc boundary.Scope, name string, data []byte) (boundary.Result, error) {
	return s.change(ctx, sc, name, len(data), func(c *call, p string, res *boundary.Result) error {
		sp, err := c.find(p)
		if err != nil {
			return err
		}
		return c.wrote(res)(c.create(sp, data))
	})
}

// create makes a file at a spot.
func (c *call) create(sp *spot, data []byte) (*Record, error) {
	if err := c.vacant(sp); err != nil {
		return nil, err
	}
	return c.put(sp, data)
}

// wrote notes what a call wrote in its result.
func (c *call) wrote(res *boundary.Result) func(*Record, error) error {
	return func(rec *Record, err error) error {
		if err != nil {
			return err
		}
		// A version that cannot be noted makes another read necessary; the file is written (M8).
		c.svc.ledger.Record(c.reader(), res.Target, rec.Version)
		res.Meta = meta(rec.written())
		return nil
	}
}

// vacant asks whether something may be made at a spot.
func (c *call) vacant(sp *spot) error {
	switch sp.is {
	case absent:
		return c.emit(sp.label)
	case foreign:
		if path.Join(sp.at, sp.name) != sp.path {
			return errNotRegular() // a part of the path, not its end
		}
	}
	return errExists()
}

// Write makes the file, or replaces the version the session read or wrote last (M3, M4).
func (s *Service) Write(ctx context.Context, sc boundary.Scope, name string, data []byte) (boundary.Result, error) {
	return s.change(ctx, sc, name, len(data), func(c *call, p string, res *boundary.Result) error {
		sp, err := c.find(p)
		if err != nil {
			return err
		}
		version, outcome := c.svc.ledger.Lookup(c.reader(), p)
		switch {
		case outcome != Known && outcome != NeverRead:
			return errLedger()
		case sp.is == absent && outcome == Known:
			return errDeleted()
		case sp.is == absent:
			return c.wrote(res)(c.create(sp, data))
		case sp.is == hidden:
			return errReadRequired()
		case sp.is != file:
			return errNotRegular()
		case outcome == NeverRead:
			return errReadRequired()
		}
		return c.wrote(res)(c.replace(sp, version, data))
	})
}

// Replace replaces exactly the named version; no version means any (M4).
func (s *Service) Replace(ctx context.Context, sc boundary.Scope, name, version string, data []byte) (boundary.Result, error) {
	return s.change(ctx, sc, name, len(data), func(c *call, p string, res *boundary.Result) error {
		sp, err := c.existing(p)
		if err != nil {
			return err
		}
		return c.wrote(res)(c.replace(sp, version, data))
	})
}

// replace gives the file at a spot new content, if it is the version.
func (c *call) replace(sp *spot, version string, data []byte) (*Record, error) {
	// The answer tells of the file, so it is observed first; after that the invocation's
	// label is at or below the file's exactly when it was before.
	if !c.observe(sp.rec.Label) {
		return nil, errAbsent()
	}
	if err := c.emit(sp.rec.Label); err != nil {
		return nil, err
	}
	if version == "" || version != sp.rec.Version {
		return nil, errVersion()
	}
	return c.put(sp, data)
}

// Edit replaces old by new in the version the session read or wrote last: its only
// occurrence, or with all every one (M6, M7). The result's value is how many were replaced.
func (s *Service) Edit(ctx context.Context, sc boundary.Scope, name string, old, new []byte, all bool) (boundary.Result, error) {
	return s.change(ctx, sc, name, 0, func(c *call, p string, res *boundary.Result) error {
		switch {
		case len(old) == 0:
			return abi.Errorf(abi.CodeEditEmpty, "the text to replace is empty")
		case bytes.Equal(old, new):
			return abi.Errorf(abi.CodeEditIdentical, "the old and the new text are the same")
		}
		sp, data, err := c.lastSeen(p)
		if err != nil {
			return err
		}
		count := occurrences(data, old)
		switch {
		case count == 0:
			res.Code = abi.CodeEditNoMatch
		case count > 1 && !all:
			res.Code = abi.CodeEditAmbiguous
		}
		if res.Code != "" {
			res.Meta = meta(struct {
				Count int `json:"count"`
			}{count})
			return nil
		}
		if all {
			count = bytes.Count(data, old)
		}
		limit := c.spec.Limits.Get(abi.LimitFileBytes)
		if size := int64(len(data)) + int64(count)*int64(len(new)-len(old)); size > limit {
			return errTooLarge(limit)
		}
		rec, err := c.replace(sp, sp.rec.Version, bytes.ReplaceAll(data, old, new))
		if err := c.wrote(res)(rec, err); err != nil {
			return err
		}
		w := rec.written()
		w.Count = &count
		res.Meta = meta(w)
		res.Value, res.HasValue = int64(count), true
		return nil
	})
}

// lastSeen reads the file at p, which must be the version the session read or wrote last
// and one the invocation may write.
func (c *call) lastSeen(p string) (*spot, []byte, error) {
	version, outcome := c.svc.ledger.Lookup(c.reader(), p)
	if outcome != Known && outcome != NeverRead {
		return nil, nil, errLedger()
	}
	sp, err := c.existing(p)
	switch {
	case abi.CodeOf(err) == abi.CodeFileNotFound && outcome == Known:
		return nil, nil, errDeleted()
	case err != nil:
		return nil, nil, err
	}
	if err := c.emit(sp.rec.Label); err != nil {
		return nil, nil, err
	}
	if outcome == NeverRead {
		return nil, nil, errReadRequired()
	}
	if limit := c.spec.Limits.Get(abi.LimitFileBytes); sp.rec.Size > limit {
		return nil, nil, errTooLarge(limit)
	}
	sp, data, err := c.read(p, 0, -1)
	if err == nil && sp.rec.Version != version {
		err = errVersion()
	}
	return sp, data, err
}

// occurrences counts old in data. Two that overlap are two: which of them is meant would
// be a guess.
func occurrences(data, old []byte) int {
	i := bytes.Index(data, old)
	if i < 0 {
		return 0
	}
	n := bytes.Count(data, old)
	if n == 1 && bytes.Contains(data[i+1:], old) {
		return 2
	}
	return n
}

package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

// Query selects rows of one organisation. Empty fields select everything.
type Query struct {
	Kind       string // a row kind
	Invocation string // an audit id
	Capability abi.CapabilityRef
	Subject    abi.Subject
	Verdict    Verdict
	Parent     string // invocations made by this one (X32)
	Root       string // this one, and all that were made for it, by it and by those it made
	After      string // cursor: [Page.Next] of the page before
	Oldest     bool   // oldest first; otherwise newest first
	Limit      int    // 1 to [MaxPage]; 0 is 50
}

// Bounds of one query.
const (
	MaxPage     = 500
	defaultPage = 50
	maxScan     = 5000 // rows looked at for one page
)

// Page is one page of rows. Next is "" when there is nothing more.
type Page struct {
	Rows []Row  `json:"rows"`
	Next string `json:"next,omitempty"`
}

func (q *Query) check() error {
	switch {
	case q.Limit < 0 || q.Limit > MaxPage:
		return abi.Errorf(abi.CodeInvalidRequest, "limit is from 1 to %d", MaxPage).At("/limit")
	case q.Verdict != "" && !q.Verdict.Valid():
		return abi.Errorf(abi.CodeInvalidRequest, "verdict is allow, deny or needs_approval").At("/verdict")
	case q.Kind != "" && !slices.Contains([]string{RowInvocation, RowRefused, RowAdmin, RowSystem}, q.Kind):
		return abi.Errorf(abi.CodeInvalidRequest, "kind is invocation, refused, admin or system").At("/kind")
	}
	for _, id := range []struct{ name, value string }{{"invocation", q.Invocation}, {"parent", q.Parent}, {"root", q.Root}, {"after", q.After}} {
		if id.value == "" {
			continue
		}
		if _, err := parseID(id.value); err != nil {
			return abi.AsError(err).At("/" + id.name)
		}
	}
	if q.Limit == 0 {
		q.Limit = defaultPage
	}
	return nil
}

// takes reports whether the query selects a row.
func (q *Query) takes(r *Row) bool {
	d := r.Decision
	if q.Capability == "" && q.Subject == "" && q.Verdict == "" && q.Parent == "" && q.Root == "" {
		return true
	}
	return d != nil &&
		(q.Capability == "" || d.Capability == q.Capability) &&
		(q.Subject == "" || d.Subject == RefOf(q.Subject)) &&
		(q.Verdict == "" || d.Verdict == q.Verdict) &&
		(q.Parent == "" || d.Parent == q.Parent) &&
		(q.Root == "" || d.Root == q.Root || r.ID == q.Root)
}

// Rows returns rows of one organisation, in order of their ids, which is the order of time. Work per
// call is bounded: a page may be short, even empty, and still have a Next. The rows of an
// organisation whose key was erased are gone.
func (l *Log) Rows(ctx context.Context, org string, q Query) (Page, error) {
	page := Page{Rows: []Row{}}
	if err := q.check(); err != nil {
		return page, err
	}
	if q.Invocation != "" {
		row, err := l.Get(ctx, org, q.Invocation)
		if abi.CodeOf(err) == abi.CodeNotFound {
			return page, nil
		}
		if err == nil && (q.Kind == "" || q.Kind == row.Kind) && q.takes(&row) {
			page.Rows = append(page.Rows, row)
		}
		return page, err
	}
	if org == "" {
		org = SystemOrg
	}
	within, err := l.lineage(ctx, org, &q)
	if err != nil {
		return page, err
	}
	rd, err := l.reader(org)
	if err != nil || rd == nil {
		return page, err
	}
	defer rd.close()
	refs, rest, err := l.candidates(org, &q)
	if err != nil {
		return page, err
	}
	for i, ref := range refs {
		if err := ctx.Err(); err != nil {
			return page, abi.Errorf(abi.CodeCanceled, "the query was cancelled").WithCause(err)
		}
		if !within(ref.id) {
			return page, nil
		}
		if q.Kind != "" && q.Kind != rowKind(ref.kind) {
			continue
		}
		row, err := rd.row(ref)
		if errors.Is(err, errErased) {
			return Page{Rows: []Row{}}, nil
		}
		if err != nil {
			return page, err
		}
		if !q.takes(&row) {
			continue
		}
		page.Rows = append(page.Rows, row)
		if len(page.Rows) == q.Limit && (i+1 < len(refs) || rest != "") {
			page.Next = ref.id.String()
			return page, nil
		}
	}
	page.Next = rest
	return page, nil
}

// lineage narrows a query for what was made for one invocation to the time in which it ran: its ids lie
// between. within says whether an id is still before the end of that time, in the query's order.
func (l *Log) lineage(ctx context.Context, org string, q *Query) (within func(ulid.ULID) bool, _ error) {
	everything := func(ulid.ULID) bool { return true }
	if q.Root == "" {
		return everything, nil
	}
	root, err := l.Get(ctx, org, q.Root)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return func(ulid.ULID) bool { return false }, nil
	}
	if err != nil {
		return nil, err
	}
	first, err := parseID(root.ID)
	if err != nil {
		return nil, err
	}
	last := ulid.ULID{}
	_ = last.SetTime(ulid.MaxTime()) // it runs
	if root.EndedAt != nil {
		err = last.SetTime(ulid.Timestamp(root.EndedAt.Add(lineageSlack)))
	} else if root.Decision != nil && root.Decision.Verdict != VerdictAllow {
		last = neighbour(first, false)
	}
	if err != nil {
		return nil, err
	}
	if q.Oldest {
		if q.After == "" {
			q.After = neighbour(first, true).String()
		}
		return func(id ulid.ULID) bool { return id.Compare(last) <= 0 }, nil
	}
	if q.After == "" {
		q.After = last.String()
	}
	return func(id ulid.ULID) bool { return id.Compare(first) >= 0 }, nil
}

// lineageSlack is by how much the times of ids and of entries may differ: both only go forward, each on
// its own.
const lineageSlack = time.Minute

// Get returns one row of org by audit id, or NOT_FOUND: also for a row of somebody else, and for
// one whose key was erased.
func (l *Log) Get(ctx context.Context, org, id string) (Row, error) {
	if org == "" {
		org = SystemOrg
	}
	absent := abi.Errorf(abi.CodeNotFound, "there is no such audit row")
	parsed, err := parseID(id)
	if err != nil {
		return Row{}, err
	}
	rd, err := l.reader(org)
	if err != nil {
		return Row{}, err
	}
	if rd == nil {
		return Row{}, absent
	}
	defer rd.close()
	ref, ok, err := l.find(rowKey{org, parsed})
	if err != nil {
		return Row{}, err
	}
	if !ok {
		return Row{}, absent
	}
	row, err := rd.row(ref)
	if errors.Is(err, errErased) {
		return Row{}, absent
	}
	return row, err
}

// reader reads the rows of one organisation. It keeps one file open; it is not safe for
// concurrent use.
type reader struct {
	l    *Log
	org  string
	base uint64
	f    *os.File
	buf  []byte
}

// reader returns nil when the organisation has no key, and so nothing that can be read.
func (l *Log) reader(org string) (*reader, error) {
	l.mu.RLock()
	closed := l.closed
	l.mu.RUnlock()
	if closed {
		return nil, unavailable(errClosed)
	}
	if !abi.ValidSlug(org) {
		return nil, nil
	}
	if _, err := l.ring.key(org, false); errors.Is(err, errErased) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "an audit key cannot be read").WithCause(err)
	}
	return &reader{l: l, org: org}, nil
}

func (r *reader) close() {
	if r.f != nil {
		r.f.Close()
	}
}

// row reads and folds one row.
func (r *reader) row(ref rowRef) (Row, error) {
	entries, err := r.entries(ref)
	if err != nil {
		return Row{}, err
	}
	return Fold(entries)
}

// entries follows a row from its last entry to its first and returns them in order.
func (r *reader) entries(ref rowRef) ([]Entry, error) {
	var out []Entry
	for at := ref.last + 1; at != 0; {
		h, body, err := r.entry(at - 1)
		if err != nil {
			return nil, err
		}
		if h.id != ref.id || h.org != r.org || h.prev >= at {
			return nil, abi.Errorf(abi.CodeInternal, "an audit entry is not of the row it is linked from")
		}
		out = append(out, Entry{Index: h.index, Time: time.UnixMilli(h.time).UTC(), Org: h.org, ID: h.id.String(), Body: body})
		at = h.prev
	}
	slices.Reverse(out)
	return out, nil
}

var errNotIndexed = errors.New("it is not in the index")

// entry reads and unseals one entry. The seal covers the header, so nothing of it is trusted
// that was not written by the log.
func (r *reader) entry(i uint64) (header, Body, error) {
	broken := func(err error) (header, Body, error) {
		if errors.Is(err, errErased) {
			return header{}, nil, err
		}
		return header{}, nil, abi.Errorf(abi.CodeInternal, "audit entry %d cannot be read", i).WithCause(err)
	}
	base, offset, length, err := r.l.locate(i)
	if err != nil {
		return broken(err)
	}
	if length < frameExtra || length > maxPayload+frameExtra {
		return broken(errNotIndexed)
	}
	if r.f == nil || r.base != base {
		r.close()
		f, err := os.Open(filepath.Join(r.l.dir, fileName(base, entriesExt)))
		if err != nil {
			r.f = nil
			return broken(err)
		}
		r.f, r.base = f, base
	}
	if int64(cap(r.buf)) < length {
		r.buf = make([]byte, length)
	}
	frame := r.buf[:length]
	if _, err := r.f.ReadAt(frame, offset); err != nil {
		return broken(err)
	}
	payload := frame[4 : length-4]
	h, sealed, err := parseHeader(payload)
	if err != nil {
		return broken(err)
	}
	if h.index != i {
		return broken(errors.New("it is another entry"))
	}
	clear, err := r.l.ring.open(nil, &h, base, payload, sealed)
	if err != nil {
		return broken(err)
	}
	body, err := decodeBody(h.kind, clear)
	if err != nil {
		return broken(err)
	}
	return h, body, nil
}

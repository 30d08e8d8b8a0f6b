package files

import (
	"container/list"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

var _ boundary.Files = (*Service)(nil)

// openWorkspaces is how many workspaces without a running call stay open.
const openWorkspaces = 256

// Service serves the workspaces below one directory. It is safe for concurrent use.
//
// Lock order: a workspace's gate, then Service.mu or workspace.mu, which are leaves.
type Service struct {
	base    *os.Root
	labels  Labels
	ledger  Ledger
	imports abi.Classification
	keep    int

	running sync.WaitGroup // calls and openings

	mu     sync.Mutex
	closed bool
	slots  map[string]*slot
	idle   *list.List // of *slot without calls; front: used last
}

// slot is one workspace's place in the service. gone is set once it is being closed.
type slot struct {
	id    string
	calls int
	ready chan struct{}
	gone  chan struct{}
	idle  *list.Element
	w     *workspace
	err   error
}

// Option sets something [New] has a default for.
type Option func(*Service)

// WithImportLabel sets the import label of workspaces made from now on; regulated unless
// set. A workspace keeps the one it was made with.
func WithImportLabel(c abi.Classification) Option {
	return func(s *Service) { s.imports = c.Source() }
}

// WithLedger sets the read ledger; one in memory unless set.
func WithLedger(l Ledger) Option { return func(s *Service) { s.ledger = l } }

// WithOpenWorkspaces sets how many unused workspaces stay open; 256 unless set.
func WithOpenWorkspaces(n int) Option { return func(s *Service) { s.keep = max(n, 0) } }

// New serves the workspaces in dir/workspaces, which it makes if needed. The file system
// must have hard links. The caller closes the service before labels goes away.
func New(dir string, labels Labels, options ...Option) (*Service, error) {
	path := filepath.Join(dir, "workspaces")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the directory of workspaces cannot be made: %w", err)
	}
	base, err := os.OpenRoot(path)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the directory of workspaces cannot be opened: %w", err)
	}
	s := &Service{
		base: base, labels: labels, imports: abi.Regulated, keep: openWorkspaces,
		slots: map[string]*slot{}, idle: list.New(),
	}
	for _, o := range options {
		o(s)
	}
	if s.ledger == nil {
		s.ledger = NewLedger(0, 0)
	}
	return s, nil
}

// Close waits for running calls, writes what is not yet written and closes every workspace.
func (s *Service) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	var errs []error
	for _, sl := range s.slots {
		if sl.w != nil {
			errs = append(errs, sl.w.close())
		}
	}
	errs = append(errs, s.base.Close())
	return errors.Join(errs...)
}

// CloseSession forgets what a session read. Its workspace stays (M33).
func (s *Service) CloseSession(session string) { s.ledger.Close(session) }

// idGrammar is what workspace ids made by the gateway look like.
var idGrammar = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func noWorkspace(cause error) *abi.Error {
	return abi.Errorf(abi.CodeNotFound, "the session has no workspace").WithCause(cause)
}

// Ensure makes the workspace id with a root directory of the given label, or finds it there.
// It is idempotent; a workspace that is there with another label is CONFLICT. When it
// returns nil the workspace survives a crash.
func (s *Service) Ensure(ctx context.Context, id string, root abi.Classification) error {
	if !idGrammar.MatchString(id) || badName(id) != "" {
		return abi.Errorf(abi.CodeInvalidRequest, "%s is not a workspace id", abi.Quote(id))
	}
	if !root.Valid() {
		return abi.Errorf(abi.CodeInvalidRequest, "a workspace needs a label")
	}
	have, err := s.rootLabel(ctx, id)
	if abi.CodeOf(err) == abi.CodeNotFound {
		if err = s.make(ctx, id, root); err != nil {
			return err
		}
		have, err = s.rootLabel(ctx, id)
	}
	if err != nil {
		return err
	}
	if have != root {
		return abi.Errorf(abi.CodeConflict, "the workspace is there with another classification")
	}
	return nil
}

// Exists reports whether the workspace id is there.
func (s *Service) Exists(ctx context.Context, id string) (bool, error) {
	_, err := s.rootLabel(ctx, id)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

func (s *Service) rootLabel(ctx context.Context, id string) (abi.Classification, error) {
	w, release, err := s.acquire(ctx, id)
	if err != nil {
		return 0, err
	}
	defer release()
	return w.record(RootPath).Label, nil
}

func (s *Service) make(ctx context.Context, id string, root abi.Classification) error {
	if err := s.base.Mkdir(id, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return diskError(err)
	}
	if err := syncDir(s.base); err != nil {
		return diskError(err)
	}
	rec := &Record{Directory: true, Label: root, Import: s.imports}
	return applyError(ctx, s.labels.Apply(ctx, id, []Change{{RootPath, rec}}))
}

// acquire opens a workspace, or finds it open. The caller calls release when its call has
// ended; until then the workspace stays open.
func (s *Service) acquire(ctx context.Context, id string) (*workspace, func(), error) {
	if !idGrammar.MatchString(id) || badName(id) != "" {
		return nil, nil, noWorkspace(nil)
	}
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, nil, abi.Errorf(abi.CodeNotReady, "the workspaces are closed")
		}
		sl := s.slots[id]
		if sl != nil && sl.gone != nil {
			gone := sl.gone
			s.mu.Unlock()
			select {
			case <-gone:
				continue
			case <-ctx.Done():
				return nil, nil, contextError(ctx)
			}
		}
		if sl == nil {
			sl = &slot{id: id, ready: make(chan struct{})}
			s.slots[id] = sl
			s.running.Add(1)
			// The opening serves everyone who waits for it, so it does not end with
			// the call that happened to be first.
			go func() {
				defer s.running.Done()
				sl.w, sl.err = openWorkspace(context.WithoutCancel(ctx), s.base, s.labels, id)
				if sl.err != nil {
					s.drop(sl)
				}
				close(sl.ready)
			}()
		}
		sl.calls++
		if sl.idle != nil {
			s.idle.Remove(sl.idle)
			sl.idle = nil
		}
		s.running.Add(1)
		s.mu.Unlock()

		release := func() { s.release(sl) }
		select {
		case <-sl.ready:
		case <-ctx.Done():
			release()
			return nil, nil, contextError(ctx)
		}
		if sl.err != nil {
			release()
			return nil, nil, sl.err
		}
		return sl.w, release, nil
	}
}

// release ends one call and closes the workspace unused for longest when too many are open.
func (s *Service) release(sl *slot) {
	defer s.running.Done()
	s.mu.Lock()
	sl.calls--
	if sl.calls > 0 || s.slots[sl.id] != sl || s.closed {
		s.mu.Unlock()
		return
	}
	sl.idle = s.idle.PushFront(sl)
	var victim *slot
	if s.idle.Len() > s.keep {
		victim = s.idle.Remove(s.idle.Back()).(*slot)
		victim.idle = nil
		// It keeps its place until it is closed: whoever opened it again before that would
		// read records that are about to be written.
		victim.gone = make(chan struct{})
	}
	s.mu.Unlock()
	if victim == nil {
		return
	}
	<-victim.ready
	if victim.w != nil {
		victim.w.close() // what it could not write is found again as changed or as removed
	}
	s.drop(victim)
	close(victim.gone)
}

// drop takes a slot out of the service.
func (s *Service) drop(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[sl.id] == sl {
		delete(s.slots, sl.id)
	}
	if sl.idle != nil {
		s.idle.Remove(sl.idle)
		sl.idle = nil
	}
}

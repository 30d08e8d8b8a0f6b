package compile

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// schedule runs at most a few jobs at once, keeps a bounded number waiting, and shares one job among
// all who want the same digest.
type schedule struct {
	queue   chan *job
	workers sync.WaitGroup
	life    context.Context
	end     context.CancelFunc

	mu     sync.Mutex // guards what follows and the counts in jobs
	closed bool
	jobs   map[Digest]*job      // waiting or running
	paused map[Digest]time.Time // rebuilds that failed, and until when not to try again
}

type job struct {
	digest   Digest
	original []byte // only validated; nil: there is none
	module   []byte
	rebuild  bool // the module comes from the source
	ctx      context.Context
	cancel   context.CancelFunc
	waiting  int // callers, and one for a rebuild; at 0 the job is cancelled
	starved  int // how often its child was; only the worker that has it looks

	done     chan struct{} // closed when the next two are set
	artifact *Artifact
	err      error
}

// rebuildPause is how long a failed rebuild is not tried again: a module that hits a limit must
// not keep the workers busy because it is asked for often.
const rebuildPause = time.Minute

type workFunc func(ctx context.Context, digest Digest, original, module []byte, rebuild bool) (*Artifact, error)

func (s *schedule) start(workers, queue int, work workFunc) {
	s.queue = make(chan *job, queue)
	s.jobs = make(map[Digest]*job)
	s.paused = make(map[Digest]time.Time)
	s.life, s.end = context.WithCancel(context.Background())
	for range workers {
		s.workers.Go(func() {
			for {
				select {
				case <-s.life.Done():
					return
				case j := <-s.queue:
					s.finish(j, func() (*Artifact, error) {
						if j.ctx.Err() != nil {
							return nil, contextError(j.ctx.Err())
						}
						return work(j.ctx, j.digest, j.original, j.module, j.rebuild)
					})
				}
			}
		})
	}
}

// maxStarved is how often a job goes back to the end of the queue because its child was starved.
const maxStarved = 1

// again puts a job whose child was starved back into the queue, behind those that wait. It reports
// false when there is no room or it was there often enough.
func (s *schedule) again(j *job) bool {
	if j.starved++; j.starved > maxStarved || j.ctx.Err() != nil {
		return false
	}
	select {
	case s.queue <- j:
		return true
	default:
		return false
	}
}

// finish runs a job and tells those who wait for it.
func (s *schedule) finish(j *job, work func() (*Artifact, error)) {
	j.artifact, j.err = work()
	starved := errors.Is(j.err, errStarved)
	if starved && s.again(j) {
		return
	}
	if j.err != nil && s.life.Err() != nil {
		j.err = draining()
	}
	s.mu.Lock()
	if s.jobs[j.digest] == j {
		delete(s.jobs, j.digest)
	}
	switch {
	case j.err == nil:
		delete(s.paused, j.digest)
	case j.rebuild && !starved: // which says nothing about the module
		s.pause(j.digest, time.Now())
	}
	s.mu.Unlock()
	j.cancel()
	j.original, j.module = nil, nil
	close(j.done)
}

// pause also drops pauses that are over, so that the map stays as small as the failures of one
// pause. s.mu is held.
func (s *schedule) pause(digest Digest, now time.Time) {
	for d, until := range s.paused {
		if now.After(until) {
			delete(s.paused, d)
		}
	}
	s.paused[digest] = now.Add(rebuildPause)
}

// do waits for the job of a digest, which it starts if there is none. A rebuild that fails is not
// the caller's failure, whose bytes are at hand: it then starts a job of its own.
func (s *schedule) do(ctx context.Context, digest Digest, original, module []byte) (*Artifact, error) {
	for {
		j, err := s.join(digest, func(j *job) { j.original, j.module = bytes.Clone(original), bytes.Clone(module) })
		if err != nil {
			return nil, err
		}
		select {
		case <-j.done:
			if j.err == nil || !j.rebuild {
				return j.artifact, j.err
			}
		case <-ctx.Done():
			s.leave(j)
			return nil, contextError(ctx.Err())
		}
	}
}

// join adds a waiting caller to a job. A new job is filled by prepare before anybody sees it.
func (s *schedule) join(digest Digest, prepare func(*job)) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, draining()
	}
	if j := s.jobs[digest]; j != nil {
		j.waiting++
		return j, nil
	}
	j := &job{digest: digest, waiting: 1, done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(s.life)
	prepare(j)
	select {
	case s.queue <- j:
		s.jobs[digest] = j
		return j, nil
	default:
		j.cancel()
		return nil, abi.Errorf(abi.CodeOverloaded, "too many modules wait to be compiled")
	}
}

// leave takes a caller away; the last one ends the job, and the next to ask starts another.
func (s *schedule) leave(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.waiting--; j.waiting > 0 {
		return
	}
	j.cancel()
	if s.jobs[j.digest] == j {
		delete(s.jobs, j.digest)
	}
}

// rebuild queues a job that nobody waits for, unless there is one already, one failed a moment ago,
// or the queue is full; the next load asks again.
func (s *schedule) rebuild(digest Digest) {
	s.mu.Lock()
	skip := s.jobs[digest] != nil || time.Now().Before(s.paused[digest])
	s.mu.Unlock()
	if skip {
		return
	}
	// Between the two critical sections somebody may have started the same job; the extra count
	// then only keeps it alive until it is done.
	_, _ = s.join(digest, func(j *job) { j.rebuild = true })
}

// stop ends the workers and everything that waits. It reports whether this call was the first.
func (s *schedule) stop() bool {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.workers.Wait()
	for {
		select {
		case j := <-s.queue:
			s.finish(j, func() (*Artifact, error) { return nil, draining() })
		default:
			return first
		}
	}
}

func draining() error {
	return abi.Errorf(abi.CodeDraining, "the compiler is shutting down")
}

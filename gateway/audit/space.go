package audit

import (
	"errors"
	"sync"
	"time"
)

// lookEvery bounds how old the known amount of free space may be. Others who fill the disk at 2 GB/s
// take 100 MB in that time, less than half of the reserve's default.
const lookEvery = 50 * time.Millisecond

// space keeps the reserve of the disk free. It is safe for concurrent use.
type space struct {
	free    func(dir string) (uint64, error)
	dir     string
	reserve uint64
	every   time.Duration

	mu   sync.Mutex
	seen time.Time
	left uint64 // free bytes, less what was taken since
}

var errReserve = errors.New("the disk is down to the audit reserve")

// take reports whether n more bytes leave the reserve untouched. The system is asked when it was not
// for a while, and whenever the answer would be no.
func (s *space) take(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.left < s.reserve+n || now.Sub(s.seen) >= s.every {
		free, err := s.free(s.dir)
		if err != nil {
			return err
		}
		s.left, s.seen = free, now
		if free < s.reserve+n {
			return errReserve
		}
	}
	s.left -= n
	return nil
}

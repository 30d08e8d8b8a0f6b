package audit

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

const (
	keptSegments = 4 // indexes of full files in memory, beside the last two
	maxLoads     = 8 // full files that one page of a listing reads
)

// segments reads the index of full files when somebody asks for their rows, and keeps the last ones. It
// is safe for concurrent use; who needs a file waits for who reads one.
type segments struct {
	dir string

	mu   sync.Mutex
	kept []*segment // the latest used first
}

// get returns the index of a full file.
func (c *segments) get(s span) (*segment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.kept, func(k *segment) bool { return k.base == s.base }); i >= 0 {
		found := c.kept[i]
		copy(c.kept[1:], c.kept[:i])
		c.kept[0] = found
		return found, nil
	}
	read, err := readSegment(c.dir, s)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "a file of the audit log cannot be read").WithCause(err)
	}
	c.kept = slices.Insert(c.kept, 0, read)
	c.kept = c.kept[:min(len(c.kept), keptSegments)]
	return read, nil
}

// readSegment reads the headers of a full file. They are only where to look: whoever reads an entry
// opens its seal, which covers the header.
func readSegment(dir string, s span) (*segment, error) {
	f, err := os.Open(filepath.Join(dir, fileName(s.base, entriesExt)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 256<<10)
	if _, err := in.Discard(fileHeader); err != nil {
		return nil, err
	}
	out := newSegment(s.base)
	orgs := map[string]string{} // one string for each name
	offset := int64(fileHeader)
	for i := range s.size {
		b, err := in.Peek(4 + headerFixed)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", s.base+uint64(i), err)
		}
		n, org := int(binary.BigEndian.Uint32(b)), int(b[4+3])
		if n < headerFixed+org+sealOverhead || n > maxPayload {
			return nil, fmt.Errorf("entry %d: %w", s.base+uint64(i), errFrameLength)
		}
		if b, err = in.Peek(4 + headerFixed + org); err != nil {
			return nil, fmt.Errorf("entry %d: %w", s.base+uint64(i), err)
		}
		name, known := orgs[string(b[4+headerFixed:])]
		if !known {
			name = string(b[4+headerFixed:])
			orgs[name] = name
		}
		h := header{kind: Kind(b[4+1]), org: name, index: s.base + uint64(i), id: ulid.ULID(b[4+28 : 4+44])}
		out.add(&h, offset, n)
		if _, err := in.Discard(n + frameExtra); err != nil && err != io.EOF {
			return nil, err
		}
		offset += int64(n) + frameExtra
	}
	return out, nil
}

// find looks for a row in every file that may have it, the latest first: there its last entry is.
func (l *Log) find(k rowKey) (rowRef, bool, error) {
	l.mu.RLock()
	sealed := l.index.sealed
	ref, ok := l.index.current.row(k)
	if !ok {
		ref, ok = l.index.previous.row(k)
	}
	l.mu.RUnlock()
	for i := len(sealed) - 2; i >= 0 && !ok; i-- { // the last of them is previous
		if !sealed[i].covers(k.id) {
			continue
		}
		s, err := l.segments.get(sealed[i])
		if err != nil {
			return rowRef{}, false, err
		}
		ref, ok = s.row(k)
	}
	return ref, ok, nil
}

// locate says where an entry is: the first index of its file, the offset and the length of its frame.
func (l *Log) locate(i uint64) (base uint64, offset, length int64, err error) {
	l.mu.RLock()
	sealed := l.index.sealed
	for _, s := range []*segment{l.index.current, l.index.previous} {
		if offset, length, ok := s.find(i); ok {
			defer l.mu.RUnlock()
			return s.base, offset, length, nil
		}
	}
	l.mu.RUnlock()
	in, ok := holding(sealed, i)
	if !ok {
		return 0, 0, 0, errNotIndexed
	}
	s, err := l.segments.get(in)
	if err != nil {
		return 0, 0, 0, err
	}
	if offset, length, ok = s.find(i); !ok {
		return 0, 0, 0, errNotIndexed
	}
	return s.base, offset, length, nil
}

package audit

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

const (
	formatVersion = 2
	headerFixed   = 60
	flagOpen      = 1 // the row stays open until an ended entry
	flagWaits     = 2 // the row waits for a resolved entry
	nonceBytes    = 12
	sealOverhead  = nonceBytes + 16

	maxPayload = 4 << 20
	frameExtra = 4 + 4
	maxGroup   = 8 << 20 // frames of one commit
)

// header is the public part of an entry. doc.go has the layout.
type header struct {
	kind   Kind
	open   bool
	waits  bool
	org    string
	index  uint64
	prev   uint64 // 0, or 1 + index
	time   int64  // Unix ms
	id     ulid.ULID
	keyID  [8]byte
	synced uint64 // so many entries were on disk for certain when this one was written
}

func (h *header) append(b []byte) []byte {
	var flags byte
	if h.open {
		flags = flagOpen
	}
	if h.waits {
		flags |= flagWaits
	}
	b = append(b, formatVersion, byte(h.kind), flags, byte(len(h.org)))
	b = binary.BigEndian.AppendUint64(b, h.index)
	b = binary.BigEndian.AppendUint64(b, h.prev)
	b = binary.BigEndian.AppendUint64(b, uint64(h.time))
	b = append(b, h.id[:]...)
	b = append(b, h.keyID[:]...)
	b = binary.BigEndian.AppendUint64(b, h.synced)
	return append(b, h.org...)
}

// parseHeader splits a payload into its header and the sealed body.
func parseHeader(p []byte) (h header, sealed []byte, err error) {
	if len(p) < headerFixed {
		return h, nil, errors.New("the header is cut")
	}
	n := headerFixed + int(p[3])
	switch {
	case p[0] != formatVersion:
		return h, nil, errors.New("the format version is unknown")
	case !Kind(p[1]).Valid():
		return h, nil, errors.New("the kind is unknown")
	case p[2]&^(flagOpen|flagWaits) != 0:
		return h, nil, errors.New("a flag is unknown")
	case len(p) < n+sealOverhead:
		return h, nil, errors.New("the entry is cut")
	}
	h = header{
		kind: Kind(p[1]), open: p[2]&flagOpen != 0, waits: p[2]&flagWaits != 0, org: string(p[headerFixed:n]),
		index: binary.BigEndian.Uint64(p[4:]), prev: binary.BigEndian.Uint64(p[12:]), time: int64(binary.BigEndian.Uint64(p[20:])),
		id: ulid.ULID(p[28:44]), keyID: [8]byte(p[44:52]), synced: binary.BigEndian.Uint64(p[52:]),
	}
	switch {
	case !abi.ValidSlug(h.org):
		return h, nil, errors.New("the organisation is not a name")
	case h.prev > h.index:
		return h, nil, errors.New("the previous entry is not before this one")
	case h.synced > h.index:
		return h, nil, errors.New("the entry says that it was on disk before it was written")
	case h.time < 0:
		return h, nil, errors.New("the time is negative")
	}
	return h, p[n:], nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame frames a payload.
func appendFrame(b, payload []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

var (
	errFrameCut    = errors.New("the entry is cut")
	errFrameLength = errors.New("the length of the entry is out of bounds")
	errFrameSum    = errors.New("the entry's checksum does not match")
)

// readFrame reads one frame into buf, growing it as bytes arrive, and returns the payload, which
// is valid until buf is used again. io.EOF means that there was not one byte.
func readFrame(r io.Reader, buf []byte) (payload, grown []byte, err error) {
	var word [4]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return nil, buf, cutOr(err)
	}
	n := int(binary.BigEndian.Uint32(word[:]))
	if n < headerFixed+1+sealOverhead || n > maxPayload {
		return nil, buf, errFrameLength
	}
	if cap(buf) < n+4 {
		buf = make([]byte, n+4, max(n+4, 2*cap(buf)))
	}
	buf = buf[:n+4]
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, buf, cutOr(err)
	}
	sum := crc32.Update(crc32.Checksum(word[:], castagnoli), castagnoli, buf[:n])
	if sum != binary.BigEndian.Uint32(buf[n:]) {
		return nil, buf, errFrameSum
	}
	return buf[:n], buf, nil
}

func cutOr(err error) error {
	if err == io.ErrUnexpectedEOF {
		return errFrameCut
	}
	return err
}

package compile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

// What parent and child say to each other, once each way.
//
//	request  magic[8] kind[1] addressSpace[8] cpu[8] artifact[8] original[8] length[8] original[…] module[length]
//	answer   length[4] header[length] length[8] artifact[length]
//
// Numbers are big-endian; cpu is in nanoseconds; the answer's header is JSON. The child believes the
// request. The parent believes nothing: every length of the answer is bounded before it is used.

const requestMagic = "ECOCHILD"

// Kinds of requests.
const (
	kindFingerprint = 'f' // no module: only the engine's fingerprint
	kindCompile     = 'c'
	kindSelfReport  = 's' // refused unless this package's own tests are linked in
)

type request struct {
	Kind         byte
	AddressSpace uint64
	CPU          time.Duration
	Artifact     uint64 // bound of the artifact in bytes
	Original     uint64 // length of what is only validated, which follows
	Length       uint64 // of the module, which follows that
}

const requestBytes = len(requestMagic) + 1 + 5*8

func (r request) encode() []byte {
	b := append(make([]byte, 0, requestBytes), requestMagic...)
	b = append(b, r.Kind)
	for _, n := range []uint64{r.AddressSpace, uint64(r.CPU), r.Artifact, r.Original, r.Length} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func readRequest(from io.Reader) (request, error) {
	var b [requestBytes]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return request{}, err
	}
	if string(b[:len(requestMagic)]) != requestMagic {
		return request{}, errors.New("not a request")
	}
	n := b[len(requestMagic)+1:]
	return request{
		Kind:         b[len(requestMagic)],
		AddressSpace: binary.BigEndian.Uint64(n),
		CPU:          time.Duration(binary.BigEndian.Uint64(n[8:])),
		Artifact:     binary.BigEndian.Uint64(n[16:]),
		Original:     binary.BigEndian.Uint64(n[24:]),
		Length:       binary.BigEndian.Uint64(n[32:]),
	}, nil
}

// maxAnswerHeader bounds the JSON part of an answer in bytes.
const maxAnswerHeader = 64 << 10

type answer struct {
	Code        abi.Code        `json:"code,omitempty"` // empty: it worked
	Message     string          `json:"message,omitempty"`
	Detail      string          `json:"detail,omitempty"` // private
	Fingerprint string          `json:"fingerprint,omitempty"`
	Name        string          `json:"name,omitempty"` // of the engine's file
	Jail        jail.Report     `json:"jail,omitempty"`
	Self        json.RawMessage `json:"self,omitempty"`
}

func (a answer) write(to io.Writer, artifact io.Reader, length int64) error {
	header, err := json.Marshal(a)
	if err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(header)))
	b = append(b, header...)
	b = binary.BigEndian.AppendUint64(b, uint64(length))
	if _, err := to.Write(b); err != nil || length == 0 {
		return err
	}
	_, err = io.CopyN(to, artifact, length)
	return err
}

// parseAnswer reads what a child wrote, all of it. The artifact is a part of b, not a copy.
func parseAnswer(b []byte, maxArtifact uint64) (answer, []byte, error) {
	if len(b) < 4 {
		return answer{}, nil, errors.New("the answer ends in its first length")
	}
	n := uint64(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n > maxAnswerHeader || n+8 > uint64(len(b)) {
		return answer{}, nil, errors.New("the answer's header is longer than it may be or than it is")
	}
	header, b := b[:n], b[n:]
	var a answer
	if err := abi.DecodeStrict(header, &a); err != nil {
		return answer{}, nil, fmt.Errorf("the answer's header: %w", err)
	}
	n, b = binary.BigEndian.Uint64(b), b[8:]
	if n > maxArtifact || n != uint64(len(b)) {
		return answer{}, nil, errors.New("the artifact is longer than it may be, or not as long as it says")
	}
	return a, b[:n:n], nil
}

// boundedBuffer keeps what is written up to a bound. Past it, it fails when strict and otherwise
// swallows. It has no other method, so that nothing is copied into it past Write.
type boundedBuffer struct {
	kept   []byte
	bound  int
	strict bool
}

func (w *boundedBuffer) Write(p []byte) (int, error) {
	room := w.bound - len(w.kept)
	if len(p) > room && w.strict {
		return 0, errors.New("more output than was asked for")
	}
	w.kept = append(w.kept, p[:min(len(p), room)]...)
	return len(p), nil
}

package host

import (
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
)

// prepare makes the copy of an admitted module that is compiled and loaded; the original is
// what is kept and digested. The copy differs in one thing: every table has a maximum. A
// table without one could be grown by the guest until the process is out of memory, because
// the engine holds table.grow to the declared maximum and to nothing else.
//
// An invalid module does not become valid by it (S2): a maximum below the minimum stays one,
// and nothing else of a module refers to a table's maximum.
//
// prepare is a function of bytes and limit alone, so that what is loaded is what was compiled.
// It trusts the structure to admission; what it cannot read is an error of the host.
func prepare(module []byte, entries int64) ([]byte, error) {
	const header, sectionTable = 8, 4
	r := wasmReader{rest: module}
	out := append(make([]byte, 0, len(module)+64), r.take(header)...)
	for len(r.rest) > 0 {
		id := r.byte()
		content := r.take(int(r.uint()))
		if id == sectionTable {
			bounded, err := boundTables(content, uint64(entries))
			if err != nil {
				return nil, err
			}
			content = bounded
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(content)))
		out = append(out, content...)
	}
	return out, r.err()
}

// boundTables gives every table of a table section a maximum of at most entries.
func boundTables(section []byte, entries uint64) ([]byte, error) {
	const hasMaximum = 1
	r := wasmReader{rest: section}
	count := r.uint()
	out := binary.AppendUvarint(nil, count)
	for i := uint64(0); i < count && !r.failed; i++ {
		kind, flags, minimum, maximum := r.byte(), r.byte(), r.uint(), entries
		if flags == hasMaximum {
			maximum = min(maximum, r.uint())
		}
		out = append(out, kind, hasMaximum)
		out = binary.AppendUvarint(out, minimum)
		out = binary.AppendUvarint(out, maximum)
	}
	return out, r.err()
}

// wasmReader reads the few shapes prepare needs. After a failure it reads zeros.
type wasmReader struct {
	rest   []byte
	failed bool
}

func (r *wasmReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.failed = nil, true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *wasmReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *wasmReader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *wasmReader) err() error {
	if !r.failed {
		return nil
	}
	return abi.Errorf(abi.CodeInternal, "an admitted module cannot be read")
}

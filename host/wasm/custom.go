package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"

	"github.com/ecotone-dev/ecotone/abi"
)

// Digest names a biome: lower-case hex of SHA-256 over the manifest and the module as they
// were uploaded, each preceded by its length as eight big-endian bytes, so that no two pairs
// share an input.
func Digest(manifest, module []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{manifest, module} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Custom returns the contents of every custom section of a name, in order, as slices of
// module. It needs no more of the module than that its sections can be told apart; otherwise
// it ends with [abi.CodeModuleMalformed].
func Custom(module []byte, name string) ([][]byte, error) {
	var out [][]byte
	for s, err := range rawSections(module) {
		if err != nil {
			return nil, err
		}
		if s.ID == SectionCustom && s.Name == name {
			out = append(out, s.Content.Of(module))
		}
	}
	return out, nil
}

// AppendCustom returns a copy of module with a custom section behind everything else. The
// module itself is not looked at.
func AppendCustom(module []byte, name string, content []byte) []byte {
	head := binary.AppendUvarint(nil, uint64(len(name)))
	head = append(head, name...)
	out := make([]byte, 0, len(module)+len(head)+len(content)+1+binary.MaxVarintLen32)
	out = append(out, module...)
	out = append(out, byte(SectionCustom))
	out = binary.AppendUvarint(out, uint64(len(head)+len(content)))
	out = append(out, head...)
	return append(out, content...)
}

// StripCustom returns a copy of module without the custom sections whose names drop accepts;
// nil drops all. Everything else stays as it is, to the byte. Like [Custom] it needs no more
// than that sections can be told apart.
func StripCustom(module []byte, drop func(name string) bool) ([]byte, error) {
	out := make([]byte, 0, len(module))
	out = append(out, module[:min(headerBytes, len(module))]...)
	for s, err := range rawSections(module) {
		if err != nil {
			return nil, err
		}
		if s.ID == SectionCustom && (drop == nil || drop(s.Name)) {
			continue
		}
		out = append(out, module[s.Offset:s.Payload.End]...)
	}
	return out, nil
}

// SetCustom returns a copy of module whose one custom section of a name has the given
// content; others of the name are dropped.
func SetCustom(module []byte, name string, content []byte) ([]byte, error) {
	out, err := StripCustom(module, func(n string) bool { return n == name })
	if err != nil {
		return nil, err
	}
	return AppendCustom(out, name, content), nil
}

// rawSections walks the sections without looking into any but custom ones. Names of any
// length and bytes are let through: these helpers edit modules, they admit none.
func rawSections(module []byte) iter.Seq2[Section, error] {
	return func(yield func(Section, error) bool) {
		p := &problems{}
		fail := func() { yield(Section{}, abi.Errorf(p.list[0].Code, "%s", p.list[0].Message).WithHint(p.list[0].Hint)) }
		if int64(len(module)) > maxModule {
			p.add(abi.CodePayloadTooLarge, "", 0, "", "the module has %d bytes", len(module))
			fail()
			return
		}
		if !identify(p, module) {
			fail()
			return
		}
		c := &cursor{problems: p, data: module, pos: headerBytes, end: len(module)}
		for c.left() > 0 {
			s := Section{Offset: uint32(c.pos)}
			s.ID = SectionID(c.byte("a section"))
			s.Payload = c.bytes(c.u32("the size of a section"), sectionLabel(s.ID))
			if s.ID == SectionCustom && !c.failed {
				in := &cursor{problems: p, data: module, pos: int(s.Payload.Start), end: int(s.Payload.End)}
				name := in.bytes(in.u32("the length of a name"), "a name")
				c.failed = in.failed
				s.Name, s.Content = string(name.Of(module)), Range{uint32(in.pos), s.Payload.End}
			}
			if c.failed {
				fail()
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

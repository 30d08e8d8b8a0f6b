package store

import (
	"encoding/binary"
	"errors"
)

// partTag begins every part of a key, so that a byte string that is no key of [Key] is
// recognised by [Split].
const partTag = 0x01

// Key builds a key from parts. Each part is written as tag, length (unsigned varint) and
// bytes: no two different lists of parts give the same key, whatever bytes the parts have,
// and Key(a...) is a prefix of Key(b...) exactly when the list a is a prefix of the list b
// (PF-E3). Within one prefix, parts of equal length sort bytewise and shorter parts before
// longer ones.
func Key(parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += 1 + binary.MaxVarintLen32 + len(p)
	}
	key := make([]byte, 0, n)
	for _, p := range parts {
		key = append(key, partTag)
		key = binary.AppendUvarint(key, uint64(len(p)))
		key = append(key, p...)
	}
	return key
}

// Number renders n as a part of fixed length that sorts as n does.
func Number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// Split returns the parts a key was built from. A byte string that [Key] would not have
// built is an error.
func Split(key []byte) ([]string, error) {
	var parts []string
	for rest := key; len(rest) > 0; {
		if rest[0] != partTag {
			return nil, errors.New("store: not a key: a part without its tag")
		}
		n, w := binary.Uvarint(rest[1:])
		if w <= 0 || (w > 1 && rest[w] == 0) {
			return nil, errors.New("store: not a key: a malformed length")
		}
		rest = rest[1+w:]
		if n > uint64(len(rest)) {
			return nil, errors.New("store: not a key: a part longer than the key")
		}
		parts = append(parts, string(rest[:n]))
		rest = rest[n:]
	}
	return parts, nil
}

package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Digest names a biome: lower-case hex of SHA-256 over the manifest and the module as they
// were uploaded, each preceded by its length as eight big-endian bytes, so that no two pairs
// share an input (PF-A9).
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

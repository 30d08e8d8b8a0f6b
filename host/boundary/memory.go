package boundary

// Memory is a guest's linear memory, for the length of one host call on the guest's own
// goroutine. The engine's memory satisfies it as it is.
type Memory interface {
	// Read returns a view of n bytes at off, or false when any of them lies outside. The
	// view changes under whoever keeps it, so nothing does (S7).
	Read(off, n uint32) ([]byte, bool)
	// Write copies b to off, or reports false and writes nothing.
	Write(off uint32, b []byte) bool
}

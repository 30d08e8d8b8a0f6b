//go:build !linux && !darwin

package line

// closed cannot tell here: a caller that leaves is noticed when it is answered.
func closed(int) bool { return false }

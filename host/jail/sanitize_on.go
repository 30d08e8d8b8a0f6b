//go:build race || msan || asan

package jail

// sanitized: the shadow memory of a sanitizer is reserved as address space, so such a binary
// cannot live under RLIMIT_AS.
const sanitized = true

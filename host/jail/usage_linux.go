package jail

import (
	"os"
	"strconv"
	"strings"
)

// AddressSpaceInUse is the virtual size of the calling process in bytes, most of which Go reserves
// and never touches; 0 when it cannot be told, as after [Enter].
func AddressSpaceInUse() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _, _ := strings.Cut(string(statm), " ")
	n, err := strconv.ParseUint(pages, 10, 64)
	if err != nil {
		return 0
	}
	return n * uint64(os.Getpagesize())
}

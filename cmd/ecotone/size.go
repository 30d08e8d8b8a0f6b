package main

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Size is a number of bytes on the command line: digits and one of KiB, MiB and GiB.
type Size int64

// leastSize is what no budget of memory makes sense below.
const leastSize = 16 << 20

var units = []struct {
	suffix string
	bytes  uint64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// UnmarshalText reads a size. What it does not read is refused, and never taken for no limit
// (PF-H10).
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		high, low := bits.Mul64(n, u.bytes)
		if err != nil || high != 0 || low > 1<<62 {
			break
		}
		if low < leastSize {
			return fmt.Errorf("%q is too little: it takes 16MiB at least", text)
		}
		*s = Size(low)
		return nil
	}
	return fmt.Errorf("%q is not a size: it is written as 512MiB or 2GiB", text)
}

// String writes a size as it is read; "" is none.
func (s Size) String() string {
	for i := len(units) - 1; i >= 0; i-- {
		if n := int64(units[i].bytes); s > 0 && int64(s)%n == 0 {
			return strconv.FormatInt(int64(s)/n, 10) + units[i].suffix
		}
	}
	return ""
}

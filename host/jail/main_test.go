package jail

import (
	"fmt"
	"os"
	"testing"
)

// The test binary is its own child: the first argument names a mode and the second what it does.
const testChild = "jail-test"

var modes = map[string]func() error{}

func TestMain(m *testing.M) {
	if os.Args[0] != testChild {
		os.Exit(m.Run())
	}
	if err := modes[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

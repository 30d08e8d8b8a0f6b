package memory

import (
	"runtime"
	"testing"
)

func TestInstalled(t *testing.T) {
	const meminfo = "MemTotal:       16384 kB\nMemFree:         1 kB\n"
	for _, c := range []struct {
		meminfo, limit string
		want           int64
	}{
		{meminfo, "", 16 << 20},
		{meminfo, "max\n", 16 << 20},
		{meminfo, "1048576\n", 1 << 20},
		{meminfo, "99999999999\n", 16 << 20},
		{"", "1048576\n", 1 << 20},
		{"", "", 0},
		{"MemTotal: many kB\n", "-1", 0},
		{"MemTotal: 9223372036854775807 kB\n", "", 0},
		{"MemTotal: 16384\n", "", 0},
	} {
		if got := installed([]byte(c.meminfo), []byte(c.limit)); got != c.want {
			t.Errorf("%q, %q: %d", c.meminfo, c.limit, got)
		}
	}
	if runtime.GOOS == "linux" && Installed() < 1<<20 {
		t.Error("this machine has no memory")
	}
}

package memory

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Installed is how many bytes of memory this process may count on: the machine's, or what the
// process's group is held to when that is less. It is 0 when the platform does not say.
func Installed() int64 {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	limit, _ := os.ReadFile("/sys/fs/cgroup/memory.max")
	return installed(meminfo, limit)
}

func installed(meminfo, limit []byte) (n int64) {
	lines := bufio.NewScanner(bytes.NewReader(meminfo))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			if kib, err := strconv.ParseInt(f[1], 10, 53); err == nil && kib > 0 {
				n = kib << 10
			}
			break
		}
	}
	if most, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil && most > 0 && (n == 0 || most < n) {
		n = most
	}
	return n
}

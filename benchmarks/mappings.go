package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mapping is one line of what /proc says of a process's address space.
type mapping struct {
	from, to uint64
	path     string
	resident uint64 // bytes
}

// mappings are those of this process, in order; nil where the system does not tell.
func mappings() (all []mapping) {
	raw, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		name, value, isField := strings.Cut(line, ": ")
		switch fields := strings.Fields(line); {
		case isField && name == "Rss":
			all[len(all)-1].resident = kib(value)
		case !isField && len(fields) >= 5:
			var m mapping
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to); err != nil {
				return nil
			}
			m.path = strings.Join(fields[5:], " ")
			all = append(all, m)
		}
	}
	return all
}

// kib is the bytes of a number of KiB as /proc writes it.
func kib(value string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
	return n << 10
}

// beside is what is resident of mappings that are neither a file on a disk nor Go's heap, which is what
// lies around an address in it without a gap.
func beside(all []mapping, heap string) (resident uint64) {
	var at uint64
	if _, err := fmt.Sscanf(heap, "0x%x", &at); err != nil {
		return 0
	}
	from, to := at, at
	for _, m := range all {
		switch {
		case m.path != "":
		case m.from <= at && at < m.to:
			from, to = min(from, m.from), m.to
		case m.from == to: // the next piece of the heap
			to = m.to
		}
	}
	for n := len(all) - 1; n >= 0; n-- { // and those before it
		if m := all[n]; m.path == "" && m.to == from {
			from = m.from
		}
	}
	for _, m := range all {
		onDisk := strings.HasPrefix(m.path, "/") && !strings.HasPrefix(m.path, "/memfd:")
		if !onDisk && (m.to <= from || m.from >= to) {
			resident += m.resident
		}
	}
	return resident
}

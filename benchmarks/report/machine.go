package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what the run ran on, without anything that names it.
type Machine struct {
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"` // major and minor version
	Go     string `json:"go"`
	Load   string `json:"loadAtStart,omitempty"` // of one, five and fifteen minutes
}

func machine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	// What follows the version can carry a builder's name.
	if v := strings.SplitN(first("/proc/sys/kernel/osrelease"), ".", 3); len(v) == 3 {
		m.Kernel = v[0] + "." + v[1]
	}
	if load := strings.Fields(first("/proc/loadavg")); len(load) > 3 {
		m.Load = strings.Join(load[:3], " ")
	}
	m.CPU = field("/proc/cpuinfo", "model name")
	m.Memory = field("/proc/meminfo", "MemTotal")
	return m
}

func (m Machine) String() string {
	cpu := ""
	if m.CPU != "" {
		cpu = " (" + m.CPU + ")"
	}
	return fmt.Sprintf("%d processors%s, memory %s, %s/%s %s, %s, load %s at the start", m.CPUs, cpu, m.Memory, m.OS, m.Arch, m.Kernel, m.Go, m.Load)
}

// Noise is how much the machine did beside the run, and how steady it was.
type Noise struct {
	Others   float64 `json:"others"`   // share of all processors' time that other processes had
	Stolen   float64 `json:"stolen"`   // share that the machine below took away
	Waiting  float64 `json:"waiting"`  // how much longer than its own processor time the probe took
	Unsteady float64 `json:"unsteady"` // spread of the probe's own processor time
	Probes   int     `json:"probes"`   // of a fixed piece of work, all through the run
}

// Levels above which a machine is too noisy for figures that are to be relied on.
const (
	mostTaken    = 0.10
	mostUnsteady = 0.20
)

// Quiet reports whether the machine was still enough to be measured on.
func (n Noise) Quiet() bool {
	return n.Others+n.Stolen <= mostTaken && n.Waiting <= mostUnsteady && n.Unsteady <= mostUnsteady
}

func (n Noise) String() string {
	s := fmt.Sprintf("other processes had %.0f%% of the processors and %.0f%% were stolen; a fixed piece of work waited %.0f%% of its time and varied by ±%.0f%% over %d probes",
		100*n.Others, 100*n.Stolen, 100*n.Waiting, 100*n.Unsteady, n.Probes)
	if n.Quiet() {
		return "The machine was quiet: " + s + "."
	}
	return "THE MACHINE WAS TOO NOISY for these figures to be relied on: " + s + "."
}

func first(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return line
}

func field(path, name string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Package jail takes from a process what it does not need: address space, processor time,
// descriptors, files, the network, new programs.
//
// It promises that [Enter] either confines the calling process for the rest of its life,
// on every thread, or returns an error; and that its [Report] says truthfully which measures
// this kernel and this build could give. It is the only package that makes the system calls of
// confinement. It refuses to know what the process is for.
package jail

import "time"

// Policy says what the calling process may still use after [Enter]. A zero number leaves that
// resource as it is; everything that is not a number is denied unless named.
type Policy struct {
	// Dir is the one directory, absolute, that can still be read and written. Empty: none.
	Dir string
	// AddressSpace bounds the virtual size in bytes (RLIMIT_AS). Go needs 1 GiB to work in.
	AddressSpace uint64
	// CPU bounds the processor time of the whole process, rounded up to seconds (RLIMIT_CPU). At the
	// bound the process exits with [ExitCPU]; a second later the kernel kills it.
	CPU time.Duration
	// Descriptors bounds how many descriptors may be open at once (RLIMIT_NOFILE).
	Descriptors uint64
	// FileSize bounds the size of any file written, in bytes (RLIMIT_FSIZE).
	FileSize uint64
	// Keep lists inherited descriptors that stay open beside 0, 1 and 2.
	Keep []int
	// Restarted says that the process runs because [Restart] executed it.
	Restarted bool
}

// ExitCPU is the exit code of a confined process that used up its processor time.
const ExitCPU = 128 + 24 // as a shell shows SIGXCPU

// Measure is one line of a report.
type Measure struct {
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	Detail  string `json:"detail,omitempty"` // what exactly was applied, or why it was not
}

// Report lists every measure this package knows, in the order they are taken.
type Report []Measure

// Applied reports whether the measure with that name is in force.
func (r Report) Applied(name string) bool {
	for _, m := range r {
		if m.Name == name {
			return m.Applied
		}
	}
	return false
}

func (r *Report) add(name string, applied bool, detail string) {
	*r = append(*r, Measure{Name: name, Applied: applied, Detail: detail})
}

// Names of measures, as reports carry them.
const (
	MeasureParentDeath  = "parent-death-signal"
	MeasureDescriptors  = "inherited-descriptors"
	MeasureNoPrivileges = "no-new-privileges"
	MeasureFiles        = "landlock-files"
	MeasureTCP          = "landlock-tcp"
	MeasureScope        = "landlock-scope"
	MeasureUndumpable   = "undumpable"
	MeasureAddressSpace = "rlimit-address-space"
	MeasureCPU          = "rlimit-cpu"
	MeasureOpenFiles    = "rlimit-descriptors"
	MeasureCore         = "rlimit-core"
	MeasureFileSize     = "rlimit-file-size"
	MeasureSystemCalls  = "seccomp"
)

//go:build !linux

package jail

import "errors"

// Enter has no measures on this platform and says so for each.
func Enter(Policy) (Report, error) {
	var r Report
	for _, name := range []string{
		MeasureDescriptors, MeasureParentDeath, MeasureNoPrivileges, MeasureFiles, MeasureTCP, MeasureScope, MeasureCore,
		MeasureOpenFiles, MeasureFileSize, MeasureCPU, MeasureAddressSpace, MeasureUndumpable, MeasureSystemCalls,
	} {
		r.add(name, false, "only on Linux")
	}
	return r, nil
}

// Restart does nothing on this platform.
func Restart(string, []string) error { return nil }

// Inherited cannot be told on this platform.
func Inherited() ([]int, error) { return nil, errors.ErrUnsupported }

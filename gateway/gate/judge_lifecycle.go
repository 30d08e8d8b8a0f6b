package gate

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
)

// judgeLifecycle holds that there is such a capability, that its biome is not disabled, and that it is
// not retired (X61). Nothing waives it.
func judgeLifecycle(v view) Result {
	if v.biome == nil {
		return Result{State: Failed, Code: abi.CodeCapabilityUnknown}
	}
	if v.biome.Disabled {
		return failed
	}
	if v.ending.State == grant.Retired {
		return Result{State: Failed, Code: abi.CodeCapabilityRetired}
	}
	return passed
}

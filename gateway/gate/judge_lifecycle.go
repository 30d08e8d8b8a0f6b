package gate

import "github.com/ecotone-dev/ecotone/abi"

func judgeLifecycle(v view) Result {
	if v.biome == nil {
		return Result{State: Failed, Code: abi.CodeCapabilityUnknown}
	}
	return pass(!v.biome.Disabled)
}

package gate

import "github.com/ecotone-dev/ecotone/abi"

// judgeRate comes before the input is judged: judging it is work, too.
func judgeRate(v view) Result {
	switch {
	case v.desc == nil:
		return notReached
	case v.env.Waives:
		return waived
	case v.f.Rate == Within:
		return passed
	case v.f.Rate == Uncounted:
		return Result{State: Pending}
	case v.f.Rate == Uncountable:
		return Result{State: Failed, Code: abi.CodeRateUnavailable}
	}
	return failed
}

package gate

func judgeApproval(v view) Result {
	switch {
	case v.desc == nil:
		return notReached
	case !v.desc.RequiresApproval:
		return passed
	case v.env.Waives:
		return waived
	}
	return failed
}

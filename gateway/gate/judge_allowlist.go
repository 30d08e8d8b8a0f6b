package gate

// judgeAllowList holds an invocation to the capabilities that an environment of an organisation's
// own names (X54). Built-in environments name none: there is nothing to judge there, and the
// absence of a list denies nothing (X55).
func judgeAllowList(v view) Result {
	named, ok := v.env.Allows(v.f.Capability)
	if !named {
		return notApplicable
	}
	return pass(ok)
}

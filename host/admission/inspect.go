package admission

// Inspect reads the module and its manifest and returns everything that was found.
func (in Inspector) Inspect(module []byte) *Report {
	panic("unfinished")
}

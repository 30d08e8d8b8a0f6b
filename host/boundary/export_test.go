package boundary

// SetSlice lets a test hand out fuel in other pieces.
func (inv *Invocation) SetSlice(n int64) { inv.slice = n }

package boundary

import "reflect"

// SetSlice lets a test hand out fuel in other pieces.
func (inv *Invocation) SetSlice(n int64) { inv.slice = n }

// Blank reports whether nothing is left of an invocation.
func Blank(inv *Invocation) bool { return reflect.ValueOf(inv).Elem().IsZero() }

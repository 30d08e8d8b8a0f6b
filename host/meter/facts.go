package meter

import "github.com/ecotone-dev/ecotone/host/wasm"

// fact is what one pass over a function finds.
type fact struct {
	price    uint64 // of all its code once, what is called and lengths apart
	frame    int64  // bytes of its call frame, estimated
	calls    bool   // it calls, other than what a leaf may
	leaf     bool   // its callers pay for it
	account  bool   // its frame is accounted: when it is entered, or at
	at       uint32 // this offset, before its first call, when that is not 0
	owed     uint64 // fuel: what it may take before it looks for the first time
	typ      uint32 // the first type equal to its own
	callees  []uint32
	indirect []uint32 // first types equal to those it calls indirectly
}

// facts looks at every function, and at what no image can hold.
func (r *rewriter) facts() {
	r.fact = make([]fact, len(r.m.Functions))
	seen := make([]uint32, len(r.m.Functions)) // function+1 that had this callee last
	frames := &frames{r: r, work: frameWork}
	for i := range r.m.Functions {
		r.find(uint32(i), seen, frames)
	}
}

func (r *rewriter) find(i uint32, seen []uint32, frames *frames) {
	fn, f := &r.m.Functions[i], &r.fact[i]
	f.typ = r.sameType[fn.Type]
	f.frame = frames.of(fn)
	f.price = priceEntry + uint64(r.locals(fn))/64
	small, arguments := true, int64(0)
	late := newLateness(r, f)
	callType := func(t wasm.FuncType) {
		arguments = max(arguments, beyondRegisters(t.Params)+beyondRegisters(t.Results))
	}
	for in := range wasm.Instructions(r.data, fn.Code) {
		late.instruction(in, f.price)
		f.price += price(in)
		switch in.Op {
		case opLoop:
			small = false
		case opCall:
			small = false
			callType(r.typeOf(in.Index))
			if in.Index >= r.imported {
				callee := in.Index - r.imported
				f.calls = true
				if seen[callee] != i+1 {
					seen[callee] = i + 1
					f.callees = append(f.callees, callee)
				}
			}
		case opCallIndirect:
			small, f.calls = false, true
			callType(r.m.Types[in.Index])
			f.indirect = append(f.indirect, r.sameType[in.Index])
		case opRefFunc:
			r.reach(in.Index)
			r.note("ref.func in a body", in.At.Start)
		case opTableSet:
			r.note("table.set", in.At.Start)
		case opMemoryInit, opDataDrop, opTableInit, opElemDrop, opTableCopy, opTableGrow, opTableFill:
			small = false
			r.note(unrestorable[in.Op], in.At.Start)
		case opMemoryCopy, opMemoryFill, opMemoryGrow:
			small = false
		}
	}
	f.frame += arguments
	late.done()
	f.leaf = small && f.price <= maxLeafPrice
}

// unrestorable are the instructions after prefix 0xfc whose effects lie in no memory and no
// global.
var unrestorable = map[uint16]string{
	opMemoryInit: "memory.init", opDataDrop: "data.drop", opTableInit: "table.init", opElemDrop: "elem.drop",
	opTableCopy: "table.copy", opTableGrow: "table.grow", opTableFill: "table.fill",
}

func (r *rewriter) note(what string, offset uint32) {
	for i := range r.reasons {
		if r.reasons[i].What == what {
			r.reasons[i].Count++
			return
		}
	}
	r.reasons = append(r.reasons, Reason{what, 1, offset})
}

// reach marks a function that an indirect call may reach.
func (r *rewriter) reach(index uint32) {
	if index >= r.imported {
		r.reachable[index-r.imported] = true
	}
}

// locals returns how many bytes a function's declared locals have.
func (r *rewriter) locals(fn *wasm.Function) (n int64) {
	s := scanner{r.data, int(fn.Body.Start)}
	for range s.u() {
		count := int64(s.u())
		n += count * sizeOf(wasm.ValType(s.byte()))
	}
	return n
}

func (r *rewriter) typeOf(function uint32) wasm.FuncType {
	if function < r.imported {
		return r.m.Types[r.importTypes[function]]
	}
	return r.m.Types[r.m.Functions[function-r.imported].Type]
}

// beyondRegisters is the room for arguments or results that registers do not take.
func beyondRegisters(list []wasm.ValType) (n int64) {
	if len(list) <= inRegisters {
		return 0
	}
	for _, t := range list {
		n = max(n, sizeOf(t))
	}
	return n * int64(len(list)-inRegisters+1)
}

func sizeOf(t wasm.ValType) int64 {
	if t == wasm.V128 {
		return 16
	}
	return 8
}

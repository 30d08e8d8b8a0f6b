package boundary

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// The WASI subset is there so that language runtimes start (M29). It reaches nothing outside
// the invocation: no arguments, no environment, no directories, no descriptors but an empty
// input and two outputs that are the log. It is bounded in each call instead of counted,
// because runtimes call it on their own account: Go asks for the time whenever it schedules.

// wasiCall is one call. Memory is read and written through it in the little-endian layout of
// wasi_snapshot_preview1.
type wasiCall struct {
	inv  *Invocation
	row  *wasiRow
	mem  Memory
	args []uint64
	at   time.Time // when it began
	word [8]byte   // on its way to the guest
}

func (w *wasiCall) arg(i int) uint32 { return uint32(w.args[i]) }

func (w *wasiCall) put(ptr uint32, b []byte) int32 {
	if !w.mem.Write(ptr, b) {
		return abi.WASIFault
	}
	return abi.WASISuccess
}

func (w *wasiCall) put32(ptr, v uint32) int32 {
	binary.LittleEndian.PutUint32(w.word[:], v)
	return w.put(ptr, w.word[:4])
}

func (w *wasiCall) put64(ptr uint32, v uint64) int32 {
	binary.LittleEndian.PutUint64(w.word[:], v)
	return w.put(ptr, w.word[:])
}

// copied takes n bytes out of guest memory, once. The caller has bounded n.
func (w *wasiCall) copied(ptr, n uint32) ([]byte, bool) {
	view, ok := w.mem.Read(ptr, n)
	if !ok {
		return nil, false
	}
	return append([]byte(nil), view...), true
}

// WASI makes one call of the WASI subset and returns its WASI errno; a name outside the
// subset answers ENOSYS. The caller must look at [Invocation.Over] before it goes back into
// the guest, and proc_exit always leaves it set.
func WASI(ctx context.Context, inv *Invocation, name string, mem Memory, args []uint64) int32 {
	row, at := wasiRows[name], inv.clock()
	if err := inv.ended(ctx, at); err != nil {
		inv.finish(err)
	}
	if inv.phase != PhaseInitialize && inv.phase != PhaseRun {
		inv.finish(abi.Errorf(abi.CodeInternal, "a WASI call outside a run"))
	}
	if inv.over != nil || row == nil {
		return abi.WASINosys
	}
	if inv.phase == PhaseInitialize && !row.constant && !slices.Contains(inv.asked, name) {
		inv.asked = append(inv.asked, name)
	}
	if inv.pay(int64(row.price.Base)) != nil {
		return abi.WASINosys
	}
	w := &inv.wasi
	*w = wasiCall{inv: inv, row: row, mem: mem, args: args, at: at}
	errno := abi.WASIInval
	inv.protect(name, func() { errno = row.handle(ctx, w) })
	return errno
}

// wasiRow is what there is to a function of the subset.
type wasiRow struct {
	handle   func(context.Context, *wasiCall) int32
	price    abi.Price
	constant bool
}

var wasiRows = func() map[string]*wasiRow {
	m := make(map[string]*wasiRow)
	for _, f := range abi.WASIFunctions() {
		if handle := wasiHandlers[f.Name]; handle != nil {
			m[f.Name] = &wasiRow{handle, f.Price(), constantWASI[f.Name]}
		}
	}
	return m
}()

// pay takes for n bytes, before they are moved; false says the invocation is over.
func (w *wasiCall) pay(n int64) bool {
	return w.inv.pay(kibs(n)*int64(w.row.price.PerKiB)) == nil
}

// constantWASI are the functions that answer every guest of every invocation the same and
// change nothing but its memory. Who has asked only these may be frozen as it is (S13).
var constantWASI = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true, "sched_yield": true,
	"fd_prestat_get": true, "fd_prestat_dir_name": true, "fd_fdstat_get": true, "fd_fdstat_set_flags": true,
	"fd_read": true, "fd_close": true, "fd_seek": true,
}

// wasiHandlers has exactly one entry for each row of [abi.WASIFunctions]; a test holds it to that.
var wasiHandlers = map[string]func(context.Context, *wasiCall) int32{
	"args_get":            nothingListed,
	"args_sizes_get":      nothingThere,
	"environ_get":         nothingListed,
	"environ_sizes_get":   nothingThere,
	"clock_res_get":       clockRes,
	"clock_time_get":      clockTime,
	"random_get":          wasiRandom,
	"sched_yield":         func(context.Context, *wasiCall) int32 { return abi.WASISuccess },
	"poll_oneoff":         pollOneoff,
	"proc_exit":           procExit,
	"fd_read":             fdRead,
	"fd_write":            fdWrite,
	"fd_close":            badf,
	"fd_seek":             badf,
	"fd_fdstat_get":       fdstat,
	"fd_fdstat_set_flags": badf,
	"fd_prestat_get":      badf, // anything else makes a Go guest panic while it initialises
	"fd_prestat_dir_name": badf,
}

func badf(context.Context, *wasiCall) int32 { return abi.WASIBadf }

func nothingListed(context.Context, *wasiCall) int32 { return abi.WASISuccess }

// nothingThere answers a count and a size of zero.
func nothingThere(_ context.Context, w *wasiCall) int32 {
	if errno := w.put32(w.arg(0), 0); errno != abi.WASISuccess {
		return errno
	}
	return w.put32(w.arg(1), 0)
}

// Clock ids: realtime and monotonic are one coarse clock; there is no processor time.
const lastClock = 1

func clockRes(_ context.Context, w *wasiCall) int32 {
	if w.arg(0) > lastClock {
		return abi.WASIInval
	}
	return w.put64(w.arg(1), uint64(w.inv.tick()))
}

func clockTime(_ context.Context, w *wasiCall) int32 {
	if w.arg(0) > lastClock {
		return abi.WASIInval
	}
	return w.put64(w.arg(2), uint64(w.inv.nowAt(w.at).UnixNano()))
}

// wasiRandom takes from the budget of random. A runtime that is refused its seed cannot go
// on, so a used-up budget ends the invocation.
func wasiRandom(_ context.Context, w *wasiCall) int32 {
	ptr, n := w.arg(0), w.arg(1)
	if _, ok := w.mem.Read(ptr, n); !ok {
		return abi.WASIFault
	}
	if err := w.inv.spend(randomBytes, int64(n), abi.LimitRandomBytes); err != nil {
		w.inv.finish(err)
		return abi.WASINotcap
	}
	if !w.pay(int64(n)) {
		return abi.WASINotcap
	}
	if err := w.inv.fill(w.mem, ptr, n); err != nil {
		w.inv.finish(abi.AsError(err))
		return abi.WASIFault
	}
	return abi.WASISuccess
}

// procExit ends the invocation. Exit code 0 after an answer (`output` or `error`) is the same
// as returning 0; every other exit is GUEST_EXIT.
func procExit(_ context.Context, w *wasiCall) int32 {
	inv, code := w.inv, w.arg(0)
	answered := inv.output != nil || inv.guest != nil
	inv.left = inv.phase == PhaseRun && code == 0 && answered
	inv.finish(abi.Errorf(abi.CodeGuestExit, "the guest ended its process with code %d", code))
	return abi.WASISuccess
}

// Bounds of one call with vectors. The whole of a call is bounded, not each vector: eight
// thousand vectors of the same megabyte are eight gigabytes.
const (
	maxVectors = 1024
	maxWrite   = 64 << 10
	vectorSize = 8
)

var streams = map[uint32]string{1: "stdout", 2: "stderr"}

// fdWrite makes one log record of one call. Past maxWrite bytes it is a short write.
func fdWrite(_ context.Context, w *wasiCall) int32 {
	stream, ok := streams[w.arg(0)]
	if !ok {
		return abi.WASIBadf
	}
	if w.arg(2) > maxVectors {
		return abi.WASIInval
	}
	vectors, ok := w.copied(w.arg(1), w.arg(2)*vectorSize)
	if !ok {
		return abi.WASIFault
	}
	var text []byte
	for ; len(vectors) > 0 && len(text) < maxWrite; vectors = vectors[vectorSize:] {
		view, ok := w.mem.Read(binary.LittleEndian.Uint32(vectors), binary.LittleEndian.Uint32(vectors[4:]))
		if !ok {
			return abi.WASIFault
		}
		text = append(text, view[:min(len(view), maxWrite-len(text))]...)
	}
	if !w.pay(int64(len(text))) {
		return abi.WASINotcap
	}
	if errno := w.put32(w.arg(3), uint32(len(text))); errno != abi.WASISuccess {
		return errno
	}
	w.inv.logs.addStream(w.at.Sub(w.inv.start), stream, text)
	return abi.WASISuccess
}

// fdRead reads the empty input: it never blocks and touches no vector.
func fdRead(_ context.Context, w *wasiCall) int32 {
	if w.arg(0) != 0 {
		return abi.WASIBadf
	}
	return w.put32(w.arg(3), 0)
}

// fdstat describes descriptors 0 to 2 as character devices without rights.
func fdstat(_ context.Context, w *wasiCall) int32 {
	if w.arg(0) > 2 {
		return abi.WASIBadf
	}
	const size, characterDevice = 24, 2
	return w.put(w.arg(1), append([]byte{characterDevice}, make([]byte, size-1)...))
}

package wasi

import (
	"context"
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// bareConstant are the functions that answer every guest of every invocation the same and
// change nothing but its memory. Who has asked only these may be frozen as it is (S13).
var bareConstant = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true, "sched_yield": true,
	"fd_prestat_get": true, "fd_prestat_dir_name": true, "fd_fdstat_get": true, "fd_fdstat_set_flags": true,
	"fd_read": true, "fd_close": true, "fd_seek": true,
}

// bareHandlers reach nothing outside the invocation (M29): no arguments, no environment, no directories,
// no descriptors but an empty input and two outputs that are the log. They are bounded in each call
// instead of counted, because runtimes call them on their own account: Go asks for the time whenever it
// schedules. What is not in it and not refused answers BADF.
var bareHandlers = map[string]handler{
	"args_get":            nothingListed,
	"args_sizes_get":      nothingThere,
	"environ_get":         nothingListed,
	"environ_sizes_get":   nothingThere,
	"clock_res_get":       clockRes,
	"clock_time_get":      clockTime,
	"random_get":          randomGet,
	"sched_yield":         func(context.Context, *boundary.Visit) int32 { return abi.WASISuccess },
	"poll_oneoff":         func(ctx context.Context, v *boundary.Visit) int32 { return pollOneoff(ctx, v, nil) },
	"proc_exit":           procExit,
	"fd_read":             readNothing,
	"fd_write":            writeLog,
	"fd_fdstat_get":       describeStream,
	"fd_close":            answer(abi.WASIBadf),
	"fd_seek":             answer(abi.WASIBadf),
	"fd_fdstat_set_flags": answer(abi.WASIBadf),
	"fd_prestat_get":      answer(abi.WASIBadf), // anything else makes a Go guest panic while it initialises
	"fd_prestat_dir_name": answer(abi.WASIBadf),
}

func nothingListed(context.Context, *boundary.Visit) int32 { return abi.WASISuccess }

// nothingThere answers a count and a size of zero.
func nothingThere(_ context.Context, v *boundary.Visit) int32 {
	return wrote(v.Put32(v.Arg(0), 0) && v.Put32(v.Arg(1), 0))
}

// Clock ids: realtime and monotonic are one coarse clock; there is no processor time.
const lastClock = 1

func clockRes(_ context.Context, v *boundary.Visit) int32 {
	if v.Arg(0) > lastClock {
		return abi.WASIInval
	}
	return wrote(v.Put64(v.Arg(1), uint64(v.Tick())))
}

func clockTime(_ context.Context, v *boundary.Visit) int32 {
	if v.Arg(0) > lastClock {
		return abi.WASIInval
	}
	return wrote(v.Put64(v.Arg(2), uint64(v.Now().UnixNano())))
}

// randomGet takes from the budget of random.
func randomGet(_ context.Context, v *boundary.Visit) int32 {
	ptr, n := v.Arg(0), v.Arg(1)
	if !v.Fits(ptr, n) {
		return abi.WASIFault
	}
	if v.Random(ptr, n) != nil {
		return abi.WASINotcapable
	}
	return abi.WASISuccess
}

func procExit(ctx context.Context, v *boundary.Visit) int32 {
	v.Exit(ctx, v.Arg(0))
	return abi.WASISuccess
}

// Bounds of one call with vectors. The whole of a call is bounded, not each vector: eight
// thousand vectors of the same megabyte are eight gigabytes.
const (
	maxVectors = 1024
	maxMoved   = 64 << 10
	vectorSize = 8
)

// vectors are the (pointer, length) pairs of one call, copied.
type vectors []byte

func vectorsOf(v *boundary.Visit, ptr, count uint32) (vectors, int32) {
	if count > maxVectors {
		return nil, abi.WASIInval
	}
	list, ok := v.Copy(ptr, count*vectorSize)
	return list, wrote(ok)
}

func (l vectors) next() (ptr, n uint32, rest vectors) {
	return binary.LittleEndian.Uint32(l), binary.LittleEndian.Uint32(l[4:]), l[vectorSize:]
}

// gather copies what the vectors point to, at most maxMoved bytes of it.
func (l vectors) gather(v *boundary.Visit) ([]byte, int32) {
	var all []byte
	for len(l) > 0 && len(all) < maxMoved {
		ptr, n, rest := l.next()
		view, ok := v.View(ptr, n)
		if !ok {
			return nil, abi.WASIFault
		}
		all = append(all, view[:min(len(view), maxMoved-len(all))]...)
		l = rest
	}
	return all, abi.WASISuccess
}

// room is how much the vectors take, at most maxMoved, when all of them are the guest's.
func (l vectors) room(v *boundary.Visit) (n uint32, errno int32) {
	for len(l) > 0 && n < maxMoved {
		ptr, size, rest := l.next()
		if !v.Fits(ptr, size) {
			return 0, abi.WASIFault
		}
		n = min(n+min(size, maxMoved), maxMoved)
		l = rest
	}
	return n, abi.WASISuccess
}

// scatter copies b to where the vectors point.
func (l vectors) scatter(v *boundary.Visit, b []byte) int32 {
	for len(l) > 0 && len(b) > 0 {
		ptr, n, rest := l.next()
		part := b[:min(int64(n), int64(len(b)))]
		if !v.Put(ptr, part) {
			return abi.WASIFault
		}
		b, l = b[len(part):], rest
	}
	return abi.WASISuccess
}

var streams = map[uint32]string{1: "stdout", 2: "stderr"}

// writeLog makes one log record of one call. Past maxMoved bytes it is a short write.
func writeLog(_ context.Context, v *boundary.Visit) int32 {
	stream, ok := streams[v.Arg(0)]
	if !ok {
		return abi.WASIBadf
	}
	return logged(v, stream)
}

func logged(v *boundary.Visit, stream string) int32 {
	list, errno := vectorsOf(v, v.Arg(1), v.Arg(2))
	if errno != abi.WASISuccess {
		return errno
	}
	text, errno := list.gather(v)
	if errno != abi.WASISuccess {
		return errno
	}
	if !v.Pay(int64(len(text))) {
		return abi.WASINotcapable
	}
	if !v.Put32(v.Arg(3), uint32(len(text))) {
		return abi.WASIFault
	}
	v.Log(boundary.LogInfo, stream, text)
	return abi.WASISuccess
}

// readNothing reads the empty input: it never blocks and touches no vector.
func readNothing(_ context.Context, v *boundary.Visit) int32 {
	if v.Arg(0) != 0 {
		return abi.WASIBadf
	}
	return wrote(v.Put32(v.Arg(3), 0))
}

// describeStream describes descriptors 0 to 2 as character devices without rights.
func describeStream(_ context.Context, v *boundary.Visit) int32 {
	if v.Arg(0) > 2 {
		return abi.WASIBadf
	}
	return wrote(v.Put(v.Arg(1), fdstat{kind: kindDevice}.bytes()))
}

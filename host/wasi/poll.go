package wasi

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Layout of subscriptions and events in wasi_snapshot_preview1.
const (
	maxSubscriptions = 64
	subscriptionSize = 48
	eventSize        = 32

	eventClock = 0
	eventWrite = 2 // the last; 1 is a read
	absolute   = 1 // flag: the timeout is a point in time
)

// subscription is one thing a guest waits for.
type subscription struct {
	userdata uint64
	tag      byte
	wait     time.Duration // of a clock, from now; never negative
	errno    int32
	bytes    uint64 // to be read or written
}

// pollOneoff sleeps until the earliest clock, and no longer than the context lasts (PF-D6).
// A subscription to a descriptor is answered at once: there is nothing to wait for. ready says how much
// there is to read or write; without it there are no descriptors.
func pollOneoff(ctx context.Context, v *boundary.Visit, ready func(fd uint32, write bool) (uint64, int32)) int32 {
	in, out, n, count := v.Arg(0), v.Arg(1), v.Arg(2), v.Arg(3)
	if n == 0 || n > maxSubscriptions {
		return abi.WASIInval
	}
	raw, ok := v.Copy(in, n*subscriptionSize)
	if !ok {
		return abi.WASIFault
	}
	// The whole of the answer must fit before anything sleeps.
	if !v.Fits(out, n*eventSize) {
		return abi.WASIFault
	}
	subs := make([]subscription, 0, n)
	for ; len(raw) > 0; raw = raw[subscriptionSize:] {
		subs = append(subs, subscriptionOf(v, raw, ready))
	}
	wait := earliest(subs)
	v.Sleep(ctx, wait)

	var events []byte
	for _, s := range subs {
		if s.wait <= wait {
			events = append(events, s.event()...)
		}
	}
	return wrote(v.Put(out, events) && v.Put32(count, uint32(len(events)/eventSize)))
}

func subscriptionOf(v *boundary.Visit, raw []byte, ready func(uint32, bool) (uint64, int32)) subscription {
	le := binary.LittleEndian
	s := subscription{userdata: le.Uint64(raw), tag: raw[8]}
	switch {
	case s.tag == eventClock:
	case ready == nil:
		s.errno = abi.WASIBadf
		return s
	case s.tag > eventWrite:
		s.errno = abi.WASIInval
		return s
	default:
		s.bytes, s.errno = ready(le.Uint32(raw[16:]), s.tag == eventWrite)
		return s
	}
	if le.Uint32(raw[16:]) > lastClock {
		s.errno = abi.WASIInval
		return s
	}
	timeout := le.Uint64(raw[24:])
	if le.Uint16(raw[40:])&absolute != 0 {
		now := uint64(v.Later().UnixNano())
		timeout -= min(now, timeout)
	}
	s.wait = time.Duration(min(timeout, uint64(1<<63-1)))
	return s
}

func earliest(subs []subscription) time.Duration {
	wait := subs[0].wait
	for _, s := range subs {
		wait = min(wait, s.wait)
	}
	return wait
}

func (s subscription) event() []byte {
	event := make([]byte, eventSize)
	binary.LittleEndian.PutUint64(event, s.userdata)
	binary.LittleEndian.PutUint16(event[8:], uint16(s.errno))
	event[10] = s.tag
	binary.LittleEndian.PutUint64(event[16:], s.bytes)
	return event
}

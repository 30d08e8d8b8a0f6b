package boundary

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Layout of subscriptions and events in wasi_snapshot_preview1.
const (
	maxSubscriptions = 64
	subscriptionSize = 48
	eventSize        = 32

	eventClock = 0
	absolute   = 1 // flag: the timeout is a point in time
)

// subscription is one thing a guest waits for.
type subscription struct {
	userdata uint64
	tag      byte
	wait     time.Duration // of a clock, from now; never negative
	errno    int32
}

// pollOneoff sleeps until the earliest clock, and no longer than the context lasts (PF-D6).
// A subscription to a descriptor is answered at once: there is nothing to wait for.
func pollOneoff(ctx context.Context, w *wasiCall) int32 {
	in, out, n, count := w.arg(0), w.arg(1), w.arg(2), w.arg(3)
	if n == 0 || n > maxSubscriptions {
		return abi.WASIInval
	}
	raw, ok := w.copied(in, n*subscriptionSize)
	if !ok {
		return abi.WASIFault
	}
	// The whole of the answer must fit before anything sleeps.
	if _, ok := w.mem.Read(out, n*eventSize); !ok {
		return abi.WASIFault
	}
	subs := make([]subscription, 0, n)
	for ; len(raw) > 0; raw = raw[subscriptionSize:] {
		subs = append(subs, w.subscription(raw))
	}
	wait := earliest(subs)
	w.inv.leave()
	sleep(ctx, wait)
	if err := Ended(ctx); err != nil {
		w.inv.finish(err)
	}
	w.inv.rejoin(ctx)

	var events []byte
	for _, s := range subs {
		if s.wait <= wait {
			events = append(events, s.event()...)
		}
	}
	if errno := w.put(out, events); errno != abi.WASISuccess {
		return errno
	}
	return w.put32(count, uint32(len(events)/eventSize))
}

func (w *wasiCall) subscription(raw []byte) subscription {
	le := binary.LittleEndian
	s := subscription{userdata: le.Uint64(raw), tag: raw[8]}
	if s.tag != eventClock {
		s.errno = abi.WASIBadf
		return s
	}
	if le.Uint32(raw[16:]) > lastClock {
		s.errno = abi.WASIInval
		return s
	}
	timeout := le.Uint64(raw[24:])
	if le.Uint16(raw[40:])&absolute != 0 {
		now := uint64(w.inv.now().UnixNano())
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

// sleep waits for d or for the end of ctx, whichever comes first.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (s subscription) event() []byte {
	event := make([]byte, eventSize)
	binary.LittleEndian.PutUint64(event, s.userdata)
	binary.LittleEndian.PutUint16(event[8:], uint16(s.errno))
	event[10] = s.tag
	return event
}

package catalogue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

const ref = abi.CapabilityRef("notes:note.read@1")

func stored(t *testing.T) store.Store {
	t.Helper()
	s, err := badger.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func set(t *testing.T, s store.Store, digest, value string) {
	t.Helper()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if value == "" {
			return tx.Delete(Key("acme", digest, ref))
		}
		return tx.Set(Key("acme", digest, ref), []byte(value))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// X12, X15: the answer is the record there is now, per version; without one there is none.
func TestStoredIsLive(t *testing.T) {
	s := stored(t)
	c := Stored{Store: s}
	ask := func(digest string) (abi.Reach, bool, error) { return c.Reach(t.Context(), "acme", digest, ref) }
	if r, known, err := ask("d1"); r.Valid() || known || err != nil {
		t.Errorf("nothing declared: %s %v %v", r, known, err)
	}
	set(t, s, "d1", "owner")
	set(t, s, "d2", "platform")
	for digest, want := range map[string]abi.Reach{"d1": abi.ReachOwner, "d2": abi.ReachPlatform} {
		if r, known, err := ask(digest); r != want || !known || err != nil {
			t.Errorf("%s: %s %v %v", digest, r, known, err)
		}
	}
	set(t, s, "d1", "")
	if r, known, err := ask("d1"); r.Valid() || known || err != nil {
		t.Errorf("removed: %s %v %v", r, known, err)
	}
	set(t, s, "d1", "global") // X8
	if r, known, err := ask("d1"); r.Valid() || known || err == nil {
		t.Errorf("damaged: %s %v %v", r, known, err)
	}
	s.Close()
	if r, known, err := ask("d2"); r.Valid() || known || err == nil {
		t.Errorf("store closed: %s %v %v", r, known, err)
	}
}

func TestSwitch(t *testing.T) {
	s := stored(t)
	set(t, s, "d1", "owner")
	c := NewSwitch(Stored{Store: s})
	ask := func(ctx context.Context) error {
		_, _, err := c.Reach(ctx, "acme", "d1", ref)
		return err
	}
	if err := ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Stop()
	if err := ask(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
	c.Start()
	c.Delay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("delayed: %v", err)
	}
	c.Start()
	if err := ask(t.Context()); err != nil {
		t.Errorf("started: %v", err)
	}
}

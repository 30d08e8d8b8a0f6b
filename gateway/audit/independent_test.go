package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// independentVerify checks a log from the published format alone: it uses nothing of this package.
func independentVerify(dir string) (size int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed: %v", p)
		}
	}()
	pub, err := os.ReadFile(filepath.Join(dir, "key.pub"))
	if err != nil {
		return 0, err
	}
	parts := strings.SplitN(strings.TrimSuffix(string(pub), "\n"), "+", 3)
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return 0, err
	}
	origin := parts[0]

	var leaves [][32]byte
	var root func(l [][32]byte) [32]byte
	root = func(l [][32]byte) [32]byte {
		switch len(l) {
		case 0:
			return sha256.Sum256(nil)
		case 1:
			return l[0]
		}
		k := 1
		for k*2 < len(l) {
			k *= 2
		}
		left, right := root(l[:k]), root(l[k:])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
	}

	files, _ := filepath.Glob(filepath.Join(dir, "*.entries"))
	sort.Strings(files)
	last := -1
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		heads, err := os.ReadFile(strings.TrimSuffix(f, ".entries") + ".heads")
		if err != nil {
			return 0, err
		}
		if string(data[:16]) != "ECOTONE-AUDIT-2\n" || binary.BigEndian.Uint64(data[16:]) != uint64(len(leaves)) {
			return 0, fmt.Errorf("%s does not continue the log", f)
		}
		for data = data[24:]; len(data) > 0; {
			n := binary.BigEndian.Uint32(data)
			payload := data[4 : 4+n]
			if binary.BigEndian.Uint64(payload[4:]) != uint64(len(leaves)) {
				return 0, fmt.Errorf("entry %d has another index", len(leaves))
			}
			leaves = append(leaves, sha256.Sum256(append([]byte{0}, payload...)))
			data = data[4+n+4:]
		}
		for lines := strings.SplitAfter(string(heads), "\n"); len(lines) > 1; lines = lines[5:] {
			text, signature := strings.Join(lines[:3], ""), strings.TrimSuffix(lines[4], "\n")
			var size int
			fmt.Sscan(lines[1], &size)
			if lines[0] != origin+"\n" || lines[3] != "\n" || size <= last || size > len(leaves) {
				return 0, fmt.Errorf("head at %d is out of form or order", size)
			}
			last = size
			sum := root(leaves[:size])
			if base64.StdEncoding.EncodeToString(sum[:])+"\n" != lines[2] {
				return 0, fmt.Errorf("head at %d has another root", size)
			}
			sig, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "— "+origin+" "))
			if err != nil || !ed25519.Verify(key[1:], []byte(text), sig[4:]) {
				return 0, fmt.Errorf("head at %d: bad signature", size)
			}
		}
	}
	if last != len(leaves) {
		return 0, fmt.Errorf("the last head covers %d of %d entries", last, len(leaves))
	}
	return len(leaves), nil
}

// The format as documented is the format as written, also after an organisation was erased.
func TestIndependentVerifier(t *testing.T) {
	dir, positions, _ := smallLog(t)
	l := mustOpen(t, Options{Dir: dir})
	if err := l.Erase(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if n, err := independentVerify(Dir(dir)); err != nil || n != len(positions)+1 {
		t.Fatalf("%d entries, %v", n, err)
	}
	path := filepath.Join(Dir(dir), fileName(0, entriesExt))
	data := must(os.ReadFile(path))
	flipped := bytes.Clone(data)
	flipped[300] ^= 1
	os.WriteFile(path, flipped, 0o600)
	if _, err := independentVerify(Dir(dir)); err == nil {
		t.Error("a flipped byte passes")
	}
}

// S18: the log's time never goes back, whatever the clock does, across a restart too.
func TestTimeNeverGoesBack(t *testing.T) {
	dir := t.TempDir()
	now := time.UnixMilli(1_800_000_000_000)
	l := mustOpen(t, Options{Dir: dir, Now: func() time.Time { return now }})
	before := mustAppend(t, l, "", "", System{Event: "started"})
	l.Close()
	l = mustOpen(t, Options{Dir: dir, Now: func() time.Time { return now.Add(-time.Hour) }})
	after := mustAppend(t, l, "", "", System{Event: "started"})
	if after.Time.Before(before.Time) {
		t.Errorf("time went from %v to %v", before.Time, after.Time)
	}
	mustVerify(t, dir, nil)
}

package vault

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

func testKeys(t testing.TB, fill byte) *Keyring {
	t.Helper()
	k, err := NewKeyring(bytes.Repeat([]byte{fill}, MasterKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// PF-F2: a sealed value opens as what it was sealed for and as nothing else.
func TestSealedIsBound(t *testing.T) {
	k := testKeys(t, 1)
	const plain = "s3cr3t-value-0123456789"
	sealed := k.Seal("acme", "crm-key", 3, NewValue([]byte(plain)))
	doc, err := json.Marshal(sealed)
	if err != nil || bytes.Contains(doc, []byte(plain)) {
		t.Fatalf("%s, %v", doc, err)
	}
	var back Sealed
	if err := json.Unmarshal(doc, &back); err != nil {
		t.Fatal(err)
	}
	v, err := k.Open("acme", "crm-key", 3, back)
	if err != nil || string(v.Reveal()) != plain {
		t.Fatalf("%v", err)
	}
	flipped := sealed
	flipped.Box = bytes.Clone(sealed.Box)
	flipped.Box[0] ^= 1
	short := sealed
	short.Nonce = sealed.Nonce[1:]
	for what, open := range map[string]func() (Value, error){
		"another org":       func() (Value, error) { return k.Open("evil", "crm-key", 3, sealed) },
		"another name":      func() (Value, error) { return k.Open("acme", "other", 3, sealed) },
		"another version":   func() (Value, error) { return k.Open("acme", "crm-key", 2, sealed) },
		"shifted boundary":  func() (Value, error) { return k.Open("acmec", "rm-key", 3, sealed) },
		"another key":       func() (Value, error) { return testKeys(t, 2).Open("acme", "crm-key", 3, sealed) },
		"a flipped bit":     func() (Value, error) { return k.Open("acme", "crm-key", 3, flipped) },
		"a short nonce":     func() (Value, error) { return k.Open("acme", "crm-key", 3, short) },
		"the empty record":  func() (Value, error) { return k.Open("acme", "crm-key", 3, Sealed{}) },
		"key id, empty box": func() (Value, error) { return k.Open("acme", "crm-key", 3, Sealed{Key: k.ID(), Nonce: sealed.Nonce}) },
	} {
		v, err := open()
		if abi.CodeOf(err) != abi.CodeSecretDenied || v.Len() != 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if again := k.Seal("acme", "crm-key", 3, NewValue([]byte(plain))); bytes.Equal(again.Nonce, sealed.Nonce) || bytes.Equal(again.Box, sealed.Box) {
		t.Error("sealing twice gave the same bytes")
	}
}

func TestMasterKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "master")
	if _, err := LoadKeyring(path, false); err == nil {
		t.Fatal("a missing key was made without being asked for")
	}
	// Processes that start at once get one key.
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			k, err := LoadKeyring(path, true)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("several keys: %v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != MasterKeyBytes {
		t.Fatalf("%v, %v", info, err)
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Fatalf("left behind: %v", entries)
	}
	for what, spoil := range map[string]func(string) error{
		"readable by others": func(p string) error { return os.Chmod(p, 0o640) },
		"too short":          func(p string) error { return os.Truncate(p, 31) },
		"too long":           func(p string) error { return os.Truncate(p, 33) },
		"a link": func(p string) error {
			return os.Rename(p, p+".real")
		},
		"a directory": func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Mkdir(p, 0o700)
		},
	} {
		p := filepath.Join(t.TempDir(), "master")
		if _, err := LoadKeyring(p, true); err != nil {
			t.Fatal(err)
		}
		if err := spoil(p); err != nil {
			t.Fatal(err)
		}
		if what == "a link" {
			if err := os.Symlink(p+".real", p); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := LoadKeyring(p, true); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

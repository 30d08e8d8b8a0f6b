package compile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

var testFingerprint = hex.EncodeToString(make([]byte, sha256.Size))

func sample(code []byte) *Artifact {
	return &Artifact{
		digest: DigestOf(code), module: DigestOf(code), fingerprint: testFingerprint,
		name: "wazero-v1.12.0-amd64-linux/" + strings.Repeat("ab", 32), code: code,
	}
}

// What is sealed comes back; one changed, added or missing byte, another digest or another key, and
// nothing does.
func TestSealProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sample(rapid.SliceOf(rapid.Byte()).Draw(t, "code"))
		file := seal(testKey, a)
		back, err := unseal(testKey, a.digest, a.fingerprint, file)
		if err != nil || back.name != a.name || back.module != a.module || !bytes.Equal(back.code, a.code) {
			t.Fatalf("%+v, %v", back, err)
		}
		other := a.digest
		other[rapid.IntRange(0, 31).Draw(t, "digest byte")] ^= 1
		if _, err := unseal(testKey, other, a.fingerprint, file); err == nil {
			t.Fatal("another digest is accepted")
		}
		if _, err := unseal(testKey[1:], a.digest, a.fingerprint, file); err == nil {
			t.Fatal("another key is accepted")
		}
		at := rapid.IntRange(0, len(file)-1).Draw(t, "at")
		if _, err := unseal(testKey, a.digest, a.fingerprint, file[:at]); err == nil {
			t.Fatal("a prefix is accepted")
		}
		file[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := unseal(testKey, a.digest, a.fingerprint, file); err == nil {
			t.Fatal("a changed bit is accepted")
		}
	})
}

// FuzzUnseal gives the parser bytes under a right MAC: what the MAC lets through must still not
// break it, nor bring a path with it.
func FuzzUnseal(f *testing.F) {
	whole := seal(testKey, sample([]byte("code")))
	f.Add(whole[:len(whole)-sha256.Size])
	f.Add([]byte(sealMagic))
	f.Add(bytes.Repeat([]byte{0xff}, 300))
	f.Fuzz(func(t *testing.T, body []byte) {
		digest := DigestOf(nil)
		a, err := unseal(testKey, digest, testFingerprint, append(bytes.Clone(body), sealMAC(testKey, digest, body)...))
		if err != nil {
			return
		}
		if !validName(a.name, a.code) || strings.Contains(a.name, "..") {
			t.Fatalf("name %q", a.name)
		}
		if again := seal(testKey, a); !bytes.Equal(again[:len(again)-sha256.Size], body) {
			t.Fatal("two encodings of one artifact")
		}
	})
}

// FuzzParseAnswer gives the parser what a child that was taken over might say.
func FuzzParseAnswer(f *testing.F) {
	var good bytes.Buffer
	a := answer{Fingerprint: testFingerprint, Name: "wazero-dev/x", Jail: jail.Report{{Name: "m", Applied: true}}}
	if err := a.write(&good, strings.NewReader("code"), 4); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add(binary.BigEndian.AppendUint32(nil, 0xffffffff))
	f.Add([]byte("\x00\x00\x00\x02{}\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, artifact, err := parseAnswer(b, 1<<20)
		if err != nil {
			return
		}
		if len(artifact) > 1<<20 {
			t.Fatal("longer than allowed")
		}
		if err := a.err(); err != nil && strings.ContainsAny(abi.AsError(err).Message, "\x00\r\n\x1b") {
			t.Fatalf("%q", abi.AsError(err).Message)
		}
	})
}

func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := request{
			Kind: rapid.Byte().Draw(t, "kind"), AddressSpace: rapid.Uint64().Draw(t, "as"),
			Artifact: rapid.Uint64().Draw(t, "artifact"), Original: rapid.Uint64().Draw(t, "original"), Length: rapid.Uint64().Draw(t, "length"),
		}
		got, err := readRequest(bytes.NewReader(want.encode()))
		if err != nil || got != want {
			t.Fatalf("%+v, %v", got, err)
		}
	})
	if _, err := readRequest(strings.NewReader(strings.Repeat("x", requestBytes))); err == nil {
		t.Error("no magic and no complaint")
	}
}

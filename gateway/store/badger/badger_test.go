package badger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("ECOTONE_TEST_OPEN"); dir != "" {
		os.Exit(openAsSecond(dir))
	}
	goleak.VerifyTestMain(m)
}

// openAsSecond is the other process of TestSecondProcess.
func openAsSecond(dir string) int {
	s, err := Open(dir, false)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s.Close()
	return 0
}

func open(t testing.TB, dir string, dev bool) *Store {
	t.Helper()
	s, err := Open(dir, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestContractOnDisk(t *testing.T) {
	dirs := map[store.Store]string{}
	storetest.Run(t, func(t testing.TB) store.Store {
		dir := t.TempDir()
		s := open(t, dir, false)
		dirs[s] = dir
		return s
	}, func(t testing.TB, s store.Store) store.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, dirs[s], false)
	})
}

func TestContractInMemory(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		s, err := OpenMemory()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}, nil)
}

// treeHash covers every name, mode and byte below dir.
func treeHash(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v %v\n", path, info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%d\n%s", len(data), data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// M49: a schema that is missing, old, new or no schema is refused and nothing is touched.
func TestOtherSchemaUntouched(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, schema string){
		"missing":        func(t *testing.T, f string) { remove(t, f) },
		"version 1":      func(t *testing.T, f string) { write(t, f, `{"schema":1,"dev":false}`) },
		"version 3":      func(t *testing.T, f string) { write(t, f, `{"schema":3,"dev":false}`) },
		"negative":       func(t *testing.T, f string) { write(t, f, `{"schema":-2,"dev":false}`) },
		"no version":     func(t *testing.T, f string) { write(t, f, `{"dev":false}`) },
		"unknown field":  func(t *testing.T, f string) { write(t, f, `{"schema":2,"dev":false,"x":1}`) },
		"twice":          func(t *testing.T, f string) { write(t, f, `{"schema":3,"dev":false,"schema":2}`) },
		"trailing":       func(t *testing.T, f string) { write(t, f, `{"schema":2,"dev":false} {}`) },
		"text":           func(t *testing.T, f string) { write(t, f, "2\n") },
		"empty":          func(t *testing.T, f string) { write(t, f, "") },
		"binary":         func(t *testing.T, f string) { write(t, f, "\x00\xff\xfe") },
		"huge":           func(t *testing.T, f string) { write(t, f, `{"schema":2,"dev":false}`+strings.Repeat(" ", 1<<20)) },
		"a directory":    func(t *testing.T, f string) { remove(t, f); must(t, os.Mkdir(f, 0o700)) },
		"a link":         func(t *testing.T, f string) { must(t, os.Rename(f, f+"2")); must(t, os.Symlink(f+"2", f)) },
		"a dangling one": func(t *testing.T, f string) { remove(t, f); must(t, os.Symlink("nowhere", f)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, false)
			must(t, s.Update(context.Background(), func(tx store.Tx) error { return tx.Set([]byte("k"), []byte("v")) }))
			must(t, s.Close())
			spoil(t, filepath.Join(dir, schemaFile))
			before := treeHash(t, dir)
			s2, err := Open(dir, false)
			if err == nil {
				s2.Close()
				t.Fatal("it opened")
			}
			if code := abi.CodeOf(err); code != abi.CodeSchemaUnsupported {
				t.Errorf("code %s: %v", code, err)
			}
			if msg := abi.AsError(err).Message; strings.Contains(msg, dir) {
				t.Errorf("the message shows the directory: %s", msg)
			}
			if after := treeHash(t, dir); after != before {
				t.Error("the directory was touched")
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) { must(t, os.Remove(path)) }

func write(t *testing.T, path, content string) { must(t, os.WriteFile(path, []byte(content), 0o600)) }

// S19: whether a directory is for development is fixed when it is made.
func TestDevIsFixed(t *testing.T) {
	for _, dev := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "new", "data")
		s := open(t, dir, dev)
		must(t, s.Close())
		if s := open(t, dir, !dev); s.Dev() != dev {
			t.Errorf("made with dev %v, and later it says %v", dev, s.Dev())
		}
	}
}

// A crash while the first schema was being written leaves a directory that still opens.
func TestHalfWrittenSchema(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, schemaNew+"1"), `{"sch`)
	open(t, dir, false)
}

// PF-H6: a second process is refused, clearly and with an exit code, not warned.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, false)
	second := func() (string, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ECOTONE_TEST_OPEN="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := second()
	if err == nil || !strings.Contains(out, string(abi.CodeConflict)+": another process has the data directory open") {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, s.Update(context.Background(), func(tx store.Tx) error { return tx.Set([]byte("k"), nil) }))
	must(t, s.Close())
	if out, err := second(); err != nil {
		t.Fatalf("after closing: %v: %s", err, out)
	}
}

func BenchmarkGet(b *testing.B) {
	s, err := OpenMemory()
	must(b, err)
	defer s.Close()
	key := store.Key("a", "b", "c")
	must(b, s.Update(b.Context(), func(tx store.Tx) error { return tx.Set(key, []byte("value")) }))
	b.ReportAllocs()
	for b.Loop() {
		must(b, s.View(b.Context(), func(tx store.Tx) error { _, err := tx.Get(key); return err }))
	}
}

// A value of the largest kind with what its owner adds comes back after opening again.
func TestLargeValue(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, false)
	large := strings.Repeat("x", 1<<20+100)
	must(t, s.Update(t.Context(), func(tx store.Tx) error { return tx.Set([]byte("k"), []byte(large)) }))
	must(t, s.Close())
	must(t, open(t, dir, false).View(t.Context(), func(tx store.Tx) error {
		v, err := tx.Get([]byte("k"))
		if string(v) != large {
			t.Errorf("%d bytes came back", len(v))
		}
		return err
	}))
}

package memory

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

const page = 64 << 10

func region(t testing.TB, pages uint64) *Region {
	t.Helper()
	r, err := Reserve(16 * page)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if r.Reallocate(pages*page) == nil {
		t.Fatal("no memory")
	}
	return r
}

// frozen is a region over an image whose byte n is n*7.
func frozen(t testing.TB, pages uint64) (*Region, *Image) {
	t.Helper()
	r := region(t, pages)
	b := r.bytes()
	for n := range b {
		b[n] = byte(n * 7)
	}
	image, err := r.Capture()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = image.Close() })
	if err := r.Map(image); err != nil {
		t.Fatal(err)
	}
	return r, image
}

func TestGrowth(t *testing.T) {
	r, err := Reserve(3*page + 5)
	if err != nil {
		t.Fatal(err)
	}
	first := r.Reallocate(page)
	first[0] = 1
	second := r.Reallocate(3 * page)
	if len(second) != 3*page || &first[0] != &second[0] || second[0] != 1 || second[3*page-1] != 0 {
		t.Errorf("%d bytes, moved: %t", len(second), &first[0] != &second[0])
	}
	if r.Reallocate(3*page+1) != nil || r.Reallocate(1<<40) != nil {
		t.Error("grew past its limit")
	}
	if r.Free(); r.bytes()[0] != 1 {
		t.Error("Free did something")
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	empty, err := Reserve(0)
	if err != nil || empty.Reallocate(0) == nil || empty.Reallocate(1) != nil || empty.Close() != nil {
		t.Error("an empty region")
	}
}

// S12: whatever is written, restored is what was captured, by either method.
func TestRestore(t *testing.T) {
	for _, method := range []string{"scan", "drop"} {
		t.Run(method, func(t *testing.T) {
			if method == "scan" && theScanner() == nil {
				t.Skip("the kernel cannot scan")
			}
			r, image := frozen(t, 8)
			other := region(t, 8)
			if err := other.Map(image); err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) {
				for range rapid.IntRange(0, 40).Draw(t, "writes") {
					at := rapid.IntRange(0, 8*page-1).Draw(t, "at")
					n := min(rapid.IntRange(1, 3*4096).Draw(t, "n"), 8*page-at)
					copy(r.bytes()[at:], bytes.Repeat([]byte{0xaa}, n))
				}
				if rapid.Bool().Draw(t, "swapped") {
					_ = unix.Madvise(r.bytes(), unix.MADV_PAGEOUT)
				}
				var err error
				if method == "scan" {
					_, err = r.Restore()
				} else {
					err = r.drop()
				}
				if err != nil || !r.Pristine() || !other.Pristine() {
					t.Fatalf("not restored: %v", err)
				}
			})
		})
	}
}

// S12: whatever is written, of whatever size the memory is, and whoever is told of it or not: restored is
// what was captured.
func TestRestoreWithoutScan(t *testing.T) {
	for _, pages := range []int{1, 2, 3, 8} {
		r, _ := frozen(t, uint64(pages))
		rapid.Check(t, func(t *rapid.T) {
			write := func(name string) {
				for range rapid.IntRange(0, 8).Draw(t, name) {
					at := rapid.IntRange(0, pages*page-1).Draw(t, "at")
					n := min(rapid.IntRange(1, 2*4096).Draw(t, "n"), pages*page-at)
					copy(r.bytes()[at:], bytes.Repeat([]byte{0xbb}, n))
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "dropped") == 0 {
				if err := r.drop(); err != nil {
					t.Fatal(err)
				}
			}
			runs := rapid.IntRange(0, 2).Draw(t, "runs")
			for range runs {
				r.Enter()
				write("writes")
				if rapid.Bool().Draw(t, "loosened") {
					r.Loosen()
					elsewhere(func() { write("writes on another thread") })
				}
				r.Leave()
			}
			if runs == 0 {
				write("untold writes")
			}
			if _, err := r.Restore(); err != nil || !r.Pristine() {
				t.Fatalf("not restored: %v", err)
			}
		})
	}
}

// elsewhere runs f on another thread.
func elsewhere(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		f()
		runtime.UnlockOSThread()
	}()
	<-done
}

// A call that writes what calls before it wrote needs no scan; one that writes another page gets
// one, and so does whoever was not watched all the time.
func TestQuietStretch(t *testing.T) {
	if theScanner() == nil || !countsFaults() {
		t.Skip("the kernel cannot scan, or counts no faults")
	}
	r, _ := frozen(t, 8)
	run := func(at ...int) stretch {
		r.Enter()
		for _, at := range at {
			r.bytes()[at]++
		}
		r.Leave()
		s := r.watch.stretch
		if _, err := r.Restore(); err != nil || !r.Pristine() {
			t.Fatalf("not restored: %v", err)
		}
		return s
	}
	if run(0, page) != doubtful {
		t.Error("nothing was known before the first scan")
	}
	// The thread may have a fault for a reason of its own, but not every time.
	quietly := func() bool {
		for range 1000 {
			if run(0, page) == quiet {
				return true
			}
		}
		return false
	}
	if !quietly() {
		t.Error("pages that were written before are looked for each time")
	}
	for n := 1; n < 100; n++ {
		if run(n*4096+5) == quiet && n != page/4096 {
			t.Fatalf("page %d was written for the first time, and nobody saw it", n)
		}
	}
	if !quietly() {
		t.Error("not quiet any more")
	}
	for name, broken := range map[string]func(){
		"loosened": func() { r.Enter(); r.Loosen(); r.Leave() },
		"twice":    func() { r.Enter(); r.Leave(); r.Enter(); r.Leave() },
	} {
		if broken(); r.watch.stretch == quiet {
			t.Errorf("%s: quiet", name)
		}
		if _, err := r.Restore(); err != nil {
			t.Fatal(err)
		}
	}
}

// S12: scanning is held to what restoring relies on before it is used, and not used where it does something
// else.
func TestTheScanIsTested(t *testing.T) {
	if s := theScanner(); s == nil {
		if Method() != "dontneed" {
			t.Errorf("no scanner, and the method is %s", Method())
		}
	} else if err := s.test(); err != nil || Method() != "pagemap-scan" {
		t.Errorf("%v, %s", err, Method())
	}
	for _, path := range []string{"/dev/null", "/proc/self/maps", "/proc/1/pagemap"} {
		other, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if (&scanner{other}).test() == nil && (path != "/proc/1/pagemap" || os.Getpid() != 1) {
			t.Errorf("%s passes for this process's pages", path)
		}
		_ = unix.Close(other)
	}
}

// The set of private pages stops growing, and past maxKept nothing is kept.
func TestRestoreKeepsWhatIsWrittenOften(t *testing.T) {
	if theScanner() == nil {
		t.Skip("the kernel cannot scan")
	}
	r, err := Reserve(64 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Reallocate(64 * page)
	image, err := r.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := r.Map(image); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.bytes()[5]++
		r.bytes()[9*page]++
		if written, err := r.Restore(); err != nil || written != 2*systemPage || r.Private() != written {
			t.Fatal(written, r.Private(), err)
		}
	}
	for at := 0; at < 64*page; at += 4096 {
		r.bytes()[at] = 1
	}
	if _, err := r.Restore(); err != nil || r.Private() != 0 || !r.Pristine() {
		t.Error(r.Private(), err)
	}
}

func TestARegionThatGrewIsNotRestored(t *testing.T) {
	r, _ := frozen(t, 2)
	r.Reallocate(3 * page)
	if _, err := r.Restore(); err == nil || r.Pristine() {
		t.Error("restored")
	}
}

// S12: sealed against everything, and not for children.
func TestImagesAreSealed(t *testing.T) {
	_, image := frozen(t, 2)
	const all = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if seals, err := unix.FcntlInt(uintptr(image.file), unix.F_GET_SEALS, 0); err != nil || seals&all != all {
		t.Errorf("seals %x, %v", seals, err)
	}
	if flags, err := unix.FcntlInt(uintptr(image.file), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %x, %v", flags, err)
	}
	if _, err := unix.Pwrite(image.file, []byte{1}, 0); err == nil {
		t.Error("an image was written to")
	}
	if unix.Ftruncate(image.file, 0) == nil || unix.Ftruncate(image.file, 3*page) == nil {
		t.Error("an image changed its size")
	}
	if _, err := unix.Mmap(image.file, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		t.Error("an image was mapped for writing")
	}
	if image.bytes[3] != 21 {
		t.Error("an image is not what was captured")
	}
}

// An image lives as long as what is mapped over it.
func TestImageOutlivesItsMaker(t *testing.T) {
	r, image := frozen(t, 2)
	if err := image.Close(); err != nil {
		t.Fatal(err)
	}
	r.bytes()[0] = 99
	if _, err := r.Restore(); err != nil || !r.Pristine() {
		t.Error(err)
	}
	image.users.Add(1) // the cleanup closes once more
}

func TestMapNeedsTheSameSize(t *testing.T) {
	_, image := frozen(t, 2)
	if region(t, 3).Map(image) == nil {
		t.Error("mapped")
	}
}

// Nothing is left of regions and images: neither mappings nor descriptors.
func TestNothingIsLeft(t *testing.T) {
	count := func() (int, int) {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return strings.Count(string(maps), "ecotone-image"), len(fds)
	}
	theScanner()
	maps, fds := count()
	for range 200 {
		r, err := Reserve(8 * page)
		if err != nil {
			t.Fatal(err)
		}
		r.Reallocate(2 * page)
		image, err := r.Capture()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Map(image); err != nil {
			t.Fatal(err)
		}
		r.bytes()[1]++
		if _, err := r.Restore(); err != nil {
			t.Fatal(err)
		}
		if err := image.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if m, f := count(); m != maps || f != fds {
		t.Errorf("%d mappings and %d descriptors more", m-maps, f-fds)
	}
}

func BenchmarkRestore(b *testing.B) {
	for name, pages := range map[string]int{"2": 2, "20": 20, "200": 200} {
		b.Run(name, func(b *testing.B) {
			r, _ := frozen(b, 14)
			for b.Loop() {
				for n := range pages {
					r.bytes()[n*4096]++
				}
				if _, err := r.Restore(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

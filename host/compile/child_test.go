package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/jail"
)

// self is what a child finds out about itself.
type self struct {
	Arguments   []string
	Environment []string
	Inherited   []int
	Refused     map[string]string // attempt → "" if it succeeded, "denied", or another error
}

// The child is this test binary, so setting the hook here sets it there.
func init() {
	selfReport = func(asked string) []byte {
		switch asked {
		case "panic":
			panic("as the engine might")
		case "exit":
			os.Exit(3)
		case "garbage":
			fmt.Print("\xff\xff\xff\xff and so on")
			os.Exit(0)
		case "nothing":
			os.Exit(0)
		case "flood":
			for range 1 << 16 {
				fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<10))
			}
			os.Exit(2)
		}
		s := self{Arguments: os.Args, Environment: os.Environ(), Refused: map[string]string{}}
		var err error
		if s.Inherited, err = jail.Inherited(); err != nil {
			panic(err)
		}
		for name, attempt := range map[string]func() error{
			"read":    func() error { _, err := os.ReadFile(asked); return err },
			"passwd":  func() error { _, err := os.ReadFile("/etc/passwd"); return err },
			"list":    func() error { _, err := os.ReadDir(".."); return err },
			"write":   func() error { return os.WriteFile(asked+".new", nil, 0o600) },
			"connect": func() error { _, err := net.DialTimeout("tcp", "127.0.0.1:9", time.Second); return err },
			"execute": func() error { return exec.Command("/bin/true").Run() },
			"own":     func() error { return os.WriteFile("scratch", nil, 0o600) },
		} {
			switch err := attempt(); {
			case err == nil:
				s.Refused[name] = ""
			case errors.Is(err, fs.ErrPermission):
				s.Refused[name] = "denied"
			default:
				s.Refused[name] = err.Error()
			}
		}
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return b
	}
}

// PF-F4, S14: empty environment, no descriptors, no files but its own, no network, no
// programs, seen from inside a child that was started the way every child is.
func TestChildFromInside(t *testing.T) {
	c, _, dir := start(t)
	t.Setenv("ECOTONE_SENTINEL", "must not be inherited")
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _, err := run(t.Context(), c.tmp, c.bounds, kindSelfReport, nil, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	var s self
	if err := json.Unmarshal(a.Self, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Environment) != 0 {
		t.Errorf("environment: %q", s.Environment)
	}
	if s.Arguments[0] != childName || len(s.Arguments) > 2 {
		t.Errorf("arguments: %q", s.Arguments)
	}
	if !a.Jail.Applied(jail.MeasureSystemCalls) && !a.Jail.Applied(jail.MeasureFiles) {
		t.Skipf("no jail on this platform: %+v", a.Jail)
	}
	if len(s.Inherited) != 0 {
		t.Errorf("descriptors: %v", s.Inherited)
	}
	want := map[string]string{"connect": "denied", "execute": "denied", "own": ""}
	if a.Jail.Applied(jail.MeasureFiles) {
		for _, name := range []string{"read", "passwd", "list", "write"} {
			want[name] = "denied"
		}
	}
	for name, outcome := range want {
		if s.Refused[name] != outcome {
			t.Errorf("%s: %q, want %q", name, s.Refused[name], outcome)
		}
	}
}

// A child that ends in any other way than with an answer is a failed compilation and nothing else.
func TestChildrenThatFail(t *testing.T) {
	c, _, _ := start(t)
	for _, asked := range []string{"panic", "exit", "garbage", "nothing", "flood"} {
		_, _, err := run(t.Context(), c.tmp, c.bounds, kindSelfReport, nil, []byte(asked))
		wantCode(t, err, abi.CodeCompileFailed)
		public := abi.AsError(err)
		if public.Message != "the engine could not compile the module" || public.Hint != "" {
			t.Errorf("%s tells %q %q", asked, public.Message, public.Hint)
		}
		if len(err.Error()) > 2*maxStderr {
			t.Errorf("%s: the cause has %d bytes", asked, len(err.Error()))
		}
	}
	mustCompile(t, c, answering(1))
}

// Modules that cost far more than their size end at each limit, and the parent goes on. The
// structural limits of admission allow all of them but the widest conditional.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	// A child of this binary starts with about as much as this process has.
	memory := jail.AddressSpaceInUse() + 256<<20
	for _, tt := range []struct {
		name   string
		module []byte
		bounds bounds
		says   string
	}{
		{
			"one body of conditionals", moduleOf(bombIfElse(43_000)),
			bounds{cpu: time.Second, wall: 5 * time.Minute, addressSpace: 2 << 30},
			"processor time",
		},
		{
			"many bodies of conditionals", moduleOf(copies(bombIfElse(8192), 40)...),
			bounds{cpu: time.Second, wall: 5 * time.Minute, addressSpace: 2 << 30},
			"processor time",
		},
		{
			"nested blocks", moduleOf(copies(bombNested(4096), 60)...),
			bounds{cpu: 5 * time.Minute, wall: time.Second, addressSpace: 2 << 30},
			"wall time",
		},
		{
			"wide branch tables", moduleOf(copies(bombBranchTables(31, 8191), 30)...),
			bounds{cpu: 5 * time.Minute, wall: 5 * time.Minute, addressSpace: memory},
			"memory",
		},
		{
			"locals times loops", moduleOf(bombLocals(4096, 8192)),
			bounds{cpu: 5 * time.Minute, wall: 5 * time.Minute, addressSpace: memory},
			"memory",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, _ := start(t)
			if tt.says == "memory" && !c.Jail().Applied(jail.MeasureAddressSpace) {
				t.Skip("the address space of this binary cannot be bounded")
			}
			usual := c.bounds
			c.bounds = tt.bounds
			_, err := c.Compile(t.Context(), DigestOf(tt.module), tt.module)
			wantCode(t, err, abi.CodeCompileLimit)
			if message := abi.AsError(err).Message; !strings.Contains(message, tt.says) {
				t.Errorf("says %q, want %q: %.300v", message, tt.says, err)
			}
			c.bounds = usual
			mustCompile(t, c, answering(1))
		})
	}
}

// An address space in which the engine finds no room for code is the limit's doing, and says so: it is
// not taken for a platform whose engine interprets.
func TestNoRoomForCode(t *testing.T) {
	c, _, _ := start(t)
	if !c.Jail().Applied(jail.MeasureAddressSpace) {
		t.Skip("the address space of this binary cannot be bounded")
	}
	module := answering(1)
	c.bounds.addressSpace = 64 << 20
	_, err := c.Compile(t.Context(), DigestOf(module), module)
	wantCode(t, err, abi.CodeCompileLimit)
}

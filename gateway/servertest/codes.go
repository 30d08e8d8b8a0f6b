package servertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
)

// place is where a test saw a code, the plainest first.
type place int

const (
	inAnswer  place = iota // the code of a problem document
	inReason               // one of the reasons of a denial, or a check that explain shows
	inReport               // a problem of a refused upload
	inRow                  // an audit row: its decision, its outcome, a line of its receipt
	atStart                // a server that does not open
	numPlaces = int(iota)
)

var placeNames = [numPlaces]string{"answer", "reason", "report", "row", "start"}

func (p place) String() string { return placeNames[p] }

// sighting is a code that a server gave a test that passed.
type sighting struct {
	test  string
	place place
}

func (s sighting) better(o sighting) bool {
	return cmp.Or(cmp.Compare(s.place, o.place), strings.Compare(s.test, o.test)) < 0
}

// reached is the best sighting of each code by this process's tests. It is filled by what the
// harness reads from servers, never by what a test says of itself.
var reached = struct {
	sync.Mutex
	codes map[abi.Code]sighting
}{codes: map[abi.Code]sighting{}}

// sightings are those of one test, which count once it has passed.
type sightings struct {
	mu    sync.Mutex
	codes map[abi.Code]place
}

// watch makes the sightings of a test. It is called before anything whose cleanup can fail the test.
func watch(t testing.TB) *sightings {
	s := &sightings{codes: map[abi.Code]place{}}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		reached.Lock()
		defer reached.Unlock()
		for code, at := range s.codes {
			now := sighting{t.Name(), at}
			if was, there := reached.codes[code]; !there || now.better(was) {
				reached.codes[code] = now
			}
		}
	})
	return s
}

func (s *sightings) add(at place, codes ...abi.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, code := range codes {
		if was, there := s.codes[code]; code != "" && (!there || at < was) {
			s.codes[code] = at
		}
	}
}

type coded struct {
	Code abi.Code `json:"code"`
}

func codesOf(all []coded) []abi.Code {
	out := make([]abi.Code, len(all))
	for i, c := range all {
		out[i] = c.Code
	}
	return out
}

// read takes the codes out of one answer. What a guest wrote is never looked at: only documents of
// the gateway's own making are, each where it is known to be.
func (s *sightings) read(path string, r Response) {
	switch {
	case r.Header.Get("Content-Type") == "application/problem+json":
		var p struct {
			coded
			Reasons  []coded `json:"reasons"`
			Problems []coded `json:"problems"`
		}
		if json.Unmarshal(r.Body, &p) == nil {
			s.add(inAnswer, p.Code)
			s.add(inReason, codesOf(p.Reasons)...)
			s.add(inReport, codesOf(p.Problems)...)
		}
	case r.Status != 200:
	case strings.HasPrefix(path, "/v1/explain/"):
		var e struct {
			Checks []coded `json:"checks"`
		}
		if json.Unmarshal(r.Body, &e) == nil {
			s.add(inReason, codesOf(e.Checks)...)
		}
	case strings.HasPrefix(path, "/v1/audit"), strings.HasPrefix(path, "/v1/invocations/"):
		var page struct {
			auditRow
			Items []auditRow `json:"items"`
		}
		if json.Unmarshal(r.Body, &page) == nil {
			for _, row := range append(page.Items, page.auditRow) {
				s.row(row)
			}
		}
	}
}

// auditRow is where a row has codes.
type auditRow struct {
	Decision coded `json:"decision"`
	Ended    struct {
		coded
		Lines []coded `json:"lines"`
	} `json:"ended"`
	Effects []coded `json:"effects"`
	Refused coded   `json:"refused"`
	Admin   coded   `json:"admin"`
}

func (s *sightings) row(r auditRow) {
	s.add(inRow, r.Decision.Code, r.Ended.Code, r.Refused.Code, r.Admin.Code)
	s.add(inRow, codesOf(r.Ended.Lines)...)
	s.add(inRow, codesOf(r.Effects)...)
}

// DoesNotOpen fails the test unless a server with these options refuses to open, with the code.
func DoesNotOpen(t testing.TB, code abi.Code, options ...func(*server.Options)) {
	t.Helper()
	seen := watch(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := server.Open(ctx, defaults(t, options))
	if err == nil {
		_ = s.Close()
		t.Fatalf("the gateway opens where %s was expected", code)
	}
	if got := abi.CodeOf(err); got != code {
		t.Fatalf("expected %s, got %s: %v", code, got, err)
	}
	seen.add(atStart, code)
}

// unreached are the codes of the catalogue that no test reached.
func unreached() []abi.Code {
	reached.Lock()
	defer reached.Unlock()
	var out []abi.Code
	for _, row := range abi.Codes() {
		if _, ok := reached.codes[row.Code]; !ok {
			out = append(out, row.Code)
		}
	}
	return out
}

// writeCodes writes one line for each code of the catalogue: the code, the test that reached it, and
// where it was seen.
func writeCodes(w io.Writer) error {
	reached.Lock()
	defer reached.Unlock()
	for _, row := range abi.Codes() {
		s, ok := reached.codes[row.Code]
		line := fmt.Sprintf("%-42s %-40s %s\n", row.Code, s.test, s.place)
		if !ok {
			line = fmt.Sprintf("%-42s none\n", row.Code)
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// settleCodes ends a run of all tests: it writes the list to the file that ECOTONE_CODES names, and
// fails when all tests passed and a code was reached by none. What failed has failed already.
func settleCodes(passed bool) error {
	if path := os.Getenv("ECOTONE_CODES"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := writeCodes(f); err != nil {
			_ = f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if left := unreached(); passed && len(left) > 0 {
		return fmt.Errorf("codes of the catalogue that no test reaches over a real server: %v", left)
	}
	return nil
}

package report

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestVerdicts(t *testing.T) {
	least, most := &Target{AtLeast, 2}, &Target{AtMost, 2}
	for _, c := range []struct {
		ratios []float64
		target *Target
		status Status
		want   Status
		close  bool
	}{
		{[]float64{2, 2, 2}, least, "", Reached, false},
		{[]float64{1.9, 1.9, 1.9}, least, "", NotReached, false},
		{[]float64{1.9, 2.2, 2.3}, least, "", Reached, true},
		{[]float64{2, 2, 2}, most, "", Reached, false},
		{[]float64{2.1, 2.1, 2.1}, most, "", NotReached, false},
		{[]float64{1.9, 2.1, 2.2}, most, "", NotReached, true},
		{nil, most, FullOnly, FullOnly, false},
		{[]float64{5}, nil, "", "", false},
	} {
		r := New(true)
		row := Measured("g", "row", "ns", []float64{1500, 1600, 1400}).Against("other", "times", c.ratios).Aim(c.target)
		row.Status = c.status
		r.Add(row)
		if got := r.Rows[0]; got.Status != c.want || got.Close != c.close {
			t.Errorf("%v %v: %q, close %v", c.ratios, c.target, got.Status, got.Close)
		}
	}
}

func TestEstimate(t *testing.T) {
	of := func(v ...float64) Estimate { return Of(v) }
	for _, c := range []struct{ got, want Estimate }{
		{of(), Estimate{}},
		{of(7), Estimate{7, 7, 7, 1}},
		{of(3, 1, 2), Estimate{2, 1, 3, 3}},
		{of(4, 1, 2, 3), Estimate{2.5, 1, 4, 4}},
		// By the binomial distribution of nine fair coins: P(≤ 1 head) is 10/512, P(≤ 2) is 46/512.
		{of(9, 8, 7, 6, 5, 4, 3, 2, 1), Estimate{5, 2, 8, 9}},
		{of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), Estimate{8, 4, 12, 15}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, not %+v", c.got, c.want)
		}
	}
}

// A row says how far its rounds lie apart, or that there was one.
func TestSpreadIsPrinted(t *testing.T) {
	r := New(false)
	r.Add(Measured("g", "three", "ns", []float64{90, 100, 110}).Against("x", "times", []float64{1, 2, 3}))
	r.Add(Measured("g", "one", "ns", []float64{90}))
	r.Add(Counted("g", "none", "allocations", 3))
	for _, want := range []string{"100 ns ±10%", "2 [1, 3] times x", "90 ns (once)", "3 allocations\n"} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("no %q in %s", want, r.Text())
		}
	}
}

func TestNoise(t *testing.T) {
	if !(Noise{Others: 0.02, Waiting: 0.01, Unsteady: 0.05}).Quiet() {
		t.Error("a quiet machine is noisy")
	}
	for _, n := range []Noise{{Others: 0.3}, {Stolen: 0.3}, {Waiting: 0.5}, {Unsteady: 0.5}} {
		if n.Quiet() || !strings.Contains(n.String(), "TOO NOISY") {
			t.Errorf("%+v is quiet", n)
		}
	}
}

func plots() map[string]string {
	return map[string]string{
		"bars.svg":  Bars("a < b", []string{"g"}, map[string][]Bar{"g": {{Name: "x & y", Value: 10}, {Name: "z", Value: 1e6, Ours: true}}}),
		"lines.svg": Lines("t", "x", "y", "ns", []Series{{Name: "s", Points: []Point{{1, 10}, {10, 20}}}, {Name: "r", Points: []Point{{1, 15}}, Style: Styled(1, 2)}}),
		"falls.svg": Waterfall("t", []Stage{{"a", 10}, {"b", 30}, {"c", 25}}),
	}
}

func TestPlotsAreXML(t *testing.T) {
	for name, svg := range plots() {
		if svg == "" {
			t.Errorf("%s: nothing", name)
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in %s", name, err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: not a number in %s", name, svg)
		}
	}
	for name, svg := range map[string]string{
		"bars": Bars("t", nil, nil), "lines": Lines("t", "x", "y", "ns", []Series{{Points: []Point{{1, 1}}}}), "falls": Waterfall("t", nil),
	} {
		if svg != "" {
			t.Errorf("%s of nothing: %s", name, svg)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.svg"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := New(true)
	r.Peers["example.com/peer"] = "v1.2.3"
	r.Add(Measured("g: h", "measured", "ns", []float64{1, 2, 3}).Aim(&Target{AtMost, 1}).Noting("a note"))
	r.Add(Unmeasured("g: h", "not measured", FullOnly, "a note"))
	for name, svg := range plots() {
		r.Plot(name, "a plot", svg)
	}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	back, err := Read(dir)
	if err != nil || !reflect.DeepEqual(back.Rows, r.Rows) || len(back.Plots) != 3 || back.Noise != r.Noise {
		t.Errorf("%v: %+v", err, back)
	}
	md, err := os.ReadFile(filepath.Join(dir, "report.md"))
	for _, want := range []string{"![a plot](bars.svg)", "full only", "(1) a note", "example.com/peer v1.2.3", "h: measured"} {
		if err != nil || !strings.Contains(string(md), want) {
			t.Errorf("%v: no %q in %s", err, want, md)
		}
	}
	if !strings.Contains(back.Summary("f/"), "![a plot](f/falls.svg)") {
		t.Error(back.Summary("f/"))
	}
	if _, err := os.Stat(filepath.Join(dir, "old.svg")); err == nil {
		t.Error("a plot that was not drawn is still there")
	}
}

package report

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// The plots carry their own background and frame, so that they read on a light page and a dark
// one, and name no font that a machine may lack.
const (
	ink, faint, gridline, ours, other = "#1c2733", "#5b6875", "#e3e8ee", "#0b7a5c", "#9aa7b5"
	plotWidth                         = 840
)

var colours = []string{other, ours, "#33658a", "#c9822b", "#b0475e", "#6d5a9c"}

// canvas is an SVG that is being drawn.
type canvas struct{ strings.Builder }

func (c *canvas) open(height int, title string) {
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13" role="img">`,
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(c, `<title>%s</title><rect x="0.5" y="0.5" width="%d" height="%d" fill="#fbfcfd" stroke="#d5dce4" rx="8"/>`, html.EscapeString(title), plotWidth-1, height-1)
	c.text(18, 28, "start", ink, 15, title, `font-weight="600"`)
}

func (c *canvas) close() string {
	c.WriteString("</svg>\n")
	return c.String()
}

func (c *canvas) text(x, y float64, anchor, colour string, size int, s string, more ...string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" font-size="%d" %s>%s</text>`, x, y, anchor, colour, size, strings.Join(more, " "), html.EscapeString(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, colour string, more ...string) {
	fmt.Fprintf(c, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" %s/>`, x1, y1, x2, y2, colour, strings.Join(more, " "))
}

func (c *canvas) bar(x, y, width, height float64, colour string) {
	fmt.Fprintf(c, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s"/>`, x, y, max(1.5, width), height, colour)
}

// axis maps values on a logarithmic scale to places.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-math.Log10(a.low))/(math.Log10(a.high)-math.Log10(a.low))*(a.to-a.from)
}

// logAxis spans values, out to whole ticks, and says where the ticks are: at powers of ten, and at
// their doubles and fivefolds where there are few of those.
func logAxis(values []float64, from, to float64) (axis, []float64, bool) {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) })
	if len(values) == 0 {
		return axis{}, nil, false
	}
	low, high := slices.Min(values), slices.Max(values)
	steps := []float64{1, 2, 5}
	if high/low > 1500 {
		steps = steps[:1]
	}
	var ticks []float64
	for decade := math.Floor(math.Log10(low)) - 1; decade <= math.Ceil(math.Log10(high)); decade++ {
		for _, s := range steps {
			ticks = append(ticks, s*math.Pow(10, decade))
		}
	}
	const fewest = 4 // or a small difference looks like a large one
	for len(ticks) > 2 && ticks[len(ticks)-2] >= high {
		ticks = ticks[:len(ticks)-1]
	}
	for len(ticks) > fewest && ticks[1] <= low {
		ticks = ticks[1:]
	}
	return axis{ticks[0], ticks[len(ticks)-1], from, to}, ticks, true
}

// Bar is one bar of a plot.
type Bar struct {
	Name  string
	Value float64 // ns
	Ours  bool    // drawn to stand out
}

// Bars draws horizontal bars on a logarithmic axis, one block for each group.
func Bars(title string, groups []string, bars map[string][]Bar) string {
	const left, right, row = 260.0, 90.0, 22.0
	var values []float64
	for _, g := range groups {
		for _, b := range bars[g] {
			values = append(values, b.Value)
		}
	}
	x, ticks, ok := logAxis(values, left, plotWidth-right)
	if !ok {
		return ""
	}
	height := 66 + float64(len(values))*row + float64(len(groups))*32
	var c canvas
	c.open(int(height), title)
	for _, v := range ticks {
		c.line(x.at(v), 44, x.at(v), height-30, gridline)
		c.text(x.at(v), height-12, "middle", faint, 11, Human(v, "ns"))
	}
	y := 44.0
	for _, g := range groups {
		c.text(18, y+20, "start", ink, 13, g, `font-weight="600"`)
		y += 28
		for _, b := range bars[g] {
			colour, weight := other, ""
			if b.Ours {
				colour, weight = ours, `font-weight="600"`
			}
			c.text(left-8, y+12, "end", ink, 12, b.Name, weight)
			c.bar(left, y+1, x.at(b.Value)-left, 14, colour)
			c.text(x.at(b.Value)+6, y+12, "start", ink, 12, Human(b.Value, "ns"), weight)
			y += row
		}
		y += 4
	}
	return c.close()
}

// Lines draws series on two logarithmic axes. unit is of the y axis.
func Lines(title, xName, yName, unit string, series []Series) string {
	const height, left, right, top, bottom = 400.0, 84.0, 204.0, 64.0, 54.0
	var xs, ys []float64
	for _, l := range series {
		for _, p := range l.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x, _, okX := logAxis(xs, left, plotWidth-right)
	y, ticks, okY := logAxis(ys, height-bottom, top)
	if !okX || !okY || slices.Min(xs) == slices.Max(xs) {
		return ""
	}
	x.low, x.high = slices.Min(xs), slices.Max(xs)
	var c canvas
	c.open(height, title)
	c.text(18, 50, "start", faint, 12, yName)
	c.text((left+plotWidth-right)/2, height-12, "middle", ink, 12, xName)
	for _, v := range ticks {
		c.line(left, y.at(v), plotWidth-right, y.at(v), gridline)
		c.text(left-8, y.at(v)+4, "end", faint, 11, Human(v, unit))
	}
	slices.Sort(xs)
	last := math.Inf(-1)
	for _, v := range slices.Compact(xs) {
		if x.at(v)-last > 34 { // room for the last label's text
			c.text(x.at(v), height-bottom+20, "middle", faint, 11, compact(v))
			last = x.at(v)
		}
	}
	for i, l := range series {
		c.series(x, y, l, i, plotWidth-right+16, 60+float64(i)*21)
	}
	return c.close()
}

// series draws one line and its entry in the legend.
func (c *canvas) series(x, y axis, l Series, i int, legendX, legendY float64) {
	colour, dash := colours[i%len(colours)], ""
	if l.Style.set {
		colour = colours[l.Style.hue%len(colours)]
		dash = []string{"", `stroke-dasharray="6 4"`, `stroke-dasharray="2 3"`}[l.Style.dash%3]
	}
	var path strings.Builder
	for _, p := range l.Points {
		if !(p.X > 0 && p.Y > 0) {
			continue
		}
		op := "L"
		if path.Len() == 0 {
			op = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", op, x.at(p.X), y.at(p.Y))
		fmt.Fprintf(c, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x.at(p.X), y.at(p.Y), colour)
	}
	fmt.Fprintf(c, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round" %s/>`, path.String(), colour, dash)
	c.line(legendX, legendY, legendX+22, legendY, colour, `stroke-width="2.5"`, dash)
	c.text(legendX+28, legendY+4, "start", ink, 12, l.Name)
}

// Style is how a series is drawn; without one, colours are given in turn.
type Style struct {
	hue, dash int
	set       bool
}

// Styled picks a colour for what belongs together, and a kind of line within.
func Styled(hue, dash int) Style { return Style{hue, dash, true} }

// Stage is one bar of a waterfall: the total with this and everything before it.
type Stage struct {
	Name  string
	Total float64 // ns
}

// Waterfall draws what each stage adds to those before it, on a linear axis.
func Waterfall(title string, stages []Stage) string {
	const left, right, row = 260.0, 120.0, 30.0
	most := 0.0
	for _, s := range stages {
		most = max(most, s.Total)
	}
	if len(stages) < 2 || most <= 0 {
		return ""
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for most/step < 4 {
		step /= 2
	}
	x := func(v float64) float64 { return left + v/most*(plotWidth-left-right) }
	height := 82 + float64(len(stages))*row
	var c canvas
	c.open(int(height), title)
	for v := 0.0; v <= most; v += step {
		c.line(x(v), 44, x(v), height-30, gridline)
		c.text(x(v), height-12, "middle", faint, 11, Human(v, "ns"))
	}
	before := 0.0
	for i, s := range stages {
		y := 52 + float64(i)*row
		colour, label := ours, "+"+Human(s.Total-before, "ns")
		switch {
		case i == 0:
			colour, label = other, Human(s.Total, "ns")
		case s.Total < before: // within the noise of what comes before
			colour, label = "#c9822b", "−"+Human(before-s.Total, "ns")
		}
		low, high := min(before, s.Total), max(before, s.Total)
		c.text(left-8, y+14, "end", ink, 12, s.Name)
		c.bar(x(low), y+2, x(high)-x(low), 18, colour)
		if i > 0 {
			c.line(x(before), y-row+20, x(before), y+2, faint, `stroke-dasharray="2 2"`)
		}
		c.text(x(high)+6, y+15, "start", ink, 12, label)
		before = s.Total
	}
	return c.close()
}

func compact(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

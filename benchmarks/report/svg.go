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

// The plots carry their own background, so that they read on a light page and a dark one.
const (
	svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13" role="img">` +
		`<title>%s</title><rect width="100%%" height="100%%" fill="#ffffff" rx="6"/><text x="16" y="26" font-size="16" font-weight="600" fill="#1c2733">%s</text>`
	ink, faint, grid, ours, peer = "#1c2733", "#5b6875", "#dfe4ea", "#0b7a5c", "#9aa7b5"
)

var colours = []string{ours, "#b0475e", "#33658a", "#c9822b", "#6d5a9c", "#5b6875"}

// Bars draws horizontal bars on a logarithmic axis, one block for each group. Values are
// nanoseconds.
func Bars(title string, groups []string, bars map[string][]Bar) string {
	const width, left, right, line = 820, 250, 100, 22
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, g := range groups {
		for _, b := range bars[g] {
			low, high = min(low, b.Value), max(high, b.Value)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	x := func(v float64) float64 {
		return left + (math.Log10(v)-math.Log10(low))/(math.Log10(high)-math.Log10(low))*(width-left-right)
	}
	height := 60 + n*line + len(groups)*30 + 20
	var s strings.Builder
	fmt.Fprintf(&s, svgHead, width, height, html.EscapeString(title), html.EscapeString(title))
	for v := low; v <= high*1.001; v *= 10 {
		fmt.Fprintf(&s, `<line x1="%.1f" x2="%.1f" y1="40" y2="%d" stroke="%s"/><text x="%.1f" y="%d" text-anchor="middle" fill="%s" font-size="11">%s</text>`,
			x(v), x(v), height-26, grid, x(v), height-10, faint, Human(v, "ns"))
	}
	y := 44
	for _, g := range groups {
		y += 26
		fmt.Fprintf(&s, `<text x="16" y="%d" font-weight="600" fill="%s">%s</text>`, y-6, ink, html.EscapeString(g))
		for _, b := range bars[g] {
			colour := peer
			if b.Ours {
				colour = ours
			}
			fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text><rect x="%d" y="%d" width="%.1f" height="15" rx="2" fill="%s"/><text x="%.1f" y="%d" fill="%s" font-size="12">%s</text>`,
				left-8, y+12, ink, html.EscapeString(b.Name), left, y, max(1, x(b.Value)-left), colour, x(b.Value)+6, y+12, faint, Human(b.Value, "ns"))
			y += line
		}
		y += 4
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// Lines draws series on two logarithmic axes. unit is of the y axis.
func Lines(title, xName, yName, unit string, series []Series) string {
	const width, height, left, right, top, bottom = 820, 380, 80, 190, 50, 50
	loX, hiX, loY, hiY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, l := range series {
		for _, p := range l.Points {
			if p.X > 0 && p.Y > 0 {
				loX, hiX, loY, hiY = min(loX, p.X), max(hiX, p.X), min(loY, p.Y), max(hiY, p.Y)
			}
		}
	}
	if loX >= hiX || math.IsInf(loY, 0) {
		return ""
	}
	loY, hiY = math.Pow(10, math.Floor(math.Log10(loY))), math.Pow(10, math.Ceil(math.Log10(hiY)))
	if loY == hiY {
		hiY *= 10
	}
	scale := func(v, lo, hi, from, to float64) float64 {
		return from + (math.Log10(v)-math.Log10(lo))/(math.Log10(hi)-math.Log10(lo))*(to-from)
	}
	x := func(v float64) float64 { return scale(v, loX, hiX, left, width-right) }
	y := func(v float64) float64 { return scale(v, loY, hiY, height-bottom, top) }
	var s strings.Builder
	fmt.Fprintf(&s, svgHead, width, height, html.EscapeString(title), html.EscapeString(title))
	for v := loY; v <= hiY*1.001; v *= 10 {
		fmt.Fprintf(&s, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/><text x="%d" y="%.1f" text-anchor="end" fill="%s" font-size="11">%s</text>`,
			left, width-right, y(v), y(v), grid, left-8, y(v)+4, faint, Human(v, unit))
	}
	seen := map[float64]bool{}
	for _, l := range series {
		for _, p := range l.Points {
			if !seen[p.X] && p.X > 0 {
				seen[p.X] = true
				fmt.Fprintf(&s, `<text x="%.1f" y="%d" text-anchor="middle" fill="%s" font-size="11">%s</text>`, x(p.X), height-bottom+18, faint, compact(p.X))
			}
		}
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text><text x="16" y="44" fill="%s" font-size="12">%s</text>`,
		(left+width-right)/2, height-12, ink, html.EscapeString(xName), faint, html.EscapeString(yName))
	for i, l := range series {
		colour := colours[i%len(colours)]
		var path strings.Builder
		for _, p := range l.Points {
			if p.X <= 0 || p.Y <= 0 {
				continue
			}
			op := "L"
			if path.Len() == 0 {
				op = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", op, x(p.X), y(p.Y))
			fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(p.X), y(p.Y), colour)
		}
		fmt.Fprintf(&s, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/><rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d" fill="%s" font-size="12">%s</text>`,
			path.String(), colour, width-right+14, 54+i*20, colour, width-right+32, 64+i*20, ink, html.EscapeString(l.Name))
	}
	s.WriteString("</svg>\n")
	return s.String()
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

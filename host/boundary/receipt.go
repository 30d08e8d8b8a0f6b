package boundary

import (
	"encoding/json"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Receipt is what an invocation did, for the audit. It carries the invocation's final label
// and is shown only to receivers cleared for it (S6).
type Receipt struct {
	Label        abi.Classification `json:"label"`
	Intent       bool               `json:"intent"` // a durable intent was recorded: the invocation may have changed something
	HostCalls    int64              `json:"hostCalls"`
	RandomBytes  int64              `json:"randomBytes"`
	Children     int64              `json:"children"`
	HTTPRequests int64              `json:"httpRequests"`
	Fuel         int64              `json:"fuel"`       // its own, without its children's and what was refunded
	PeakMemory   int64              `json:"peakMemory"` // bytes of linear memory at the end, its peak: memory never shrinks
	Took         time.Duration      `json:"took"`       // ns, from New to the end
	Lines        []Line             `json:"lines,omitempty"`
	// Unlisted counts host calls without a line of their own: those that touch nothing
	// outside the invocation and were not refused, and all past [MaxLines]. External
	// effects are in the journal whether or not they have a line.
	Unlisted Counts      `json:"unlisted,omitzero"`
	Logs     []LogRecord `json:"logs,omitempty"`
	Guest    *GuestError `json:"guest,omitempty"` // what the capability said of its failure
}

// MaxLines bounds the lines of one receipt.
const MaxLines = 2048

// Line is one host call.
type Line struct {
	Call     int64    `json:"call"` // its number in the invocation, from 1; the journal's line
	Function string   `json:"function"`
	Target   string   `json:"target,omitempty"` // canonical path, key, ref, URL without query …
	Secret   string   `json:"secret,omitempty"` // that a request named; its value is nowhere
	Code     abi.Code `json:"code,omitempty"`   // "": done; otherwise the true reason, which the errno may hide
	// Withheld counts objects above the ceiling that the call treated as absent (S5).
	Withheld int64              `json:"withheld,omitempty"`
	In       int64              `json:"in,omitempty"`  // bytes of arguments
	Out      int64              `json:"out,omitempty"` // bytes placed in the result register or in memory
	Label    abi.Classification `json:"label"`         // the invocation's, after the call
	Start    time.Duration      `json:"start"`         // ns since New
	Took     time.Duration      `json:"took"`          // ns
}

// list writes the line of a call that has a target or was refused, and counts any other.
func (c *call) list() {
	inv := c.inv
	if (c.fn.Receipt == "" && c.line.Code == "") || len(inv.lines) >= MaxLines {
		inv.unlisted[c.handler.index]++
		return
	}
	if inv.lines == nil {
		inv.lines = make([]Line, 0, firstLines)
	}
	c.line.Start = c.when().Sub(inv.start)
	c.line.Took = inv.clock().Sub(c.at)
	inv.lines = append(inv.lines, c.line)
}

const (
	firstLines   = 8  // of a receipt that has any
	maxFunctions = 32 // of the table; a test holds it to that
)

// Counts are numbers of calls, by row of the table of host functions.
type Counts [maxFunctions]int32

// Of is the number of calls of a function, by name.
func (c *Counts) Of(function string) int64 {
	for i := range abi.Functions() {
		if abi.Functions()[i].Name == function {
			return int64(c[i])
		}
	}
	return 0
}

// IsZero reports whether there were no calls.
func (c Counts) IsZero() bool { return c == Counts{} }

// MarshalJSON writes the numbers that are not 0, by name.
func (c Counts) MarshalJSON() ([]byte, error) {
	named := make(map[string]int32)
	for i := range abi.Functions() {
		if c[i] != 0 {
			named[abi.Functions()[i].Name] = c[i]
		}
	}
	return json.Marshal(named)
}

func (inv *Invocation) receipt(peakMemory int64, now time.Time) Receipt {
	return Receipt{
		Label:        inv.label,
		Intent:       inv.intent,
		HostCalls:    inv.used.calls,
		RandomBytes:  inv.used.random,
		Children:     inv.used.children,
		HTTPRequests: inv.used.requests,
		Fuel:         inv.used.fuel,
		PeakMemory:   peakMemory,
		Took:         now.Sub(inv.start),
		Lines:        inv.lines,
		Unlisted:     inv.unlisted,
		Logs:         inv.logs.records,
		Guest:        inv.guest,
	}
}

// LogRecord is one record a guest wrote. Text holds no control bytes and is valid UTF-8.
type LogRecord struct {
	At     time.Duration `json:"at"` // ns since New
	Level  LogLevel      `json:"level"`
	Stream string        `json:"stream,omitempty"` // stdout or stderr when it came by WASI
	Text   string        `json:"text"`
	Cut    bool          `json:"cut,omitempty"` // the line was longer
	// Dropped marks the one record that says the quota was reached; it counts what is not there.
	Dropped int64 `json:"dropped,omitempty"`
}

// LogLevel is the level argument of log.
type LogLevel uint8

const (
	LogDebug LogLevel = iota
	LogInfo
	LogWarn
	LogError
)

var logLevelNames = [...]string{"debug", "info", "warn", "error"}

func (l LogLevel) String() string { return logLevelNames[min(l, LogError)] }

// MarshalText writes the level's name.
func (l LogLevel) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

package tck

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Check takes a case to a host and returns everything that was not as it must be, or nil.
func Check(ctx context.Context, h Host, c Case) (err error) {
	s, err := h.Open(ctx)
	if err != nil {
		return fmt.Errorf("tck: no session: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	for i, r := range c.Runs {
		if r.Before != "" {
			if err := s.Disturb(ctx, r.Before); err != nil {
				return fmt.Errorf("tck: %s: %w", r.Before, err)
			}
		}
		out, err := invoke(ctx, h, s, r)
		if err != nil {
			return fmt.Errorf("tck: run %d: %w", i+1, err)
		}
		if err := r.judge(out, h.Origin().URL); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

func invoke(ctx context.Context, h Host, s Session, r Run) (*Outcome, error) {
	input := []byte(encode(r.Steps, r.Silent, h.Origin().URL))
	if !r.Cancel {
		return s.Invoke(ctx, input)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reached := h.Origin().reached()
	go func() {
		select {
		case <-reached:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.Invoke(ctx, input)
}

// judge compares an outcome with what the run must give.
func (r *Run) judge(o *Outcome, origin string) error {
	var wrong []error
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if o.Code != r.Want.Code {
		bad("it ended with %q, not %q (%s)", o.Code, r.Want.Code, o.Failure)
	}
	if r.Want.LogBytes != 0 && o.LogBytes != r.Want.LogBytes {
		bad("the log took %d bytes, not %d", o.LogBytes, r.Want.LogBytes)
	}
	if want := r.receipt(); !slices.Equal(o.Receipt, want) {
		bad("the receipt is %v, not %v", o.Receipt, want)
	}
	switch {
	case r.Want.Code != "":
		if o.Output != nil {
			bad("it failed with the output %q", o.Output)
		}
		if r.Want.Failure != (Failure{}) && o.Failure != r.Want.Failure {
			bad("its failure is %+v, not %+v", o.Failure, r.Want.Failure)
		}
	case r.Silent:
		if string(o.Output) != r.Want.Output {
			bad("its output is %q, not %q", o.Output, r.Want.Output)
		}
	case o.Code == "":
		wrong = append(wrong, r.judgeReport(o.Output, origin))
	}
	return errors.Join(wrong...)
}

// receipt are the lines the steps must leave.
func (r *Run) receipt() []Line {
	var lines []Line
	for _, s := range r.Steps {
		if f, ok := abi.FunctionByName(s.Function); ok && (f.Receipt != "" || s.Want.Errno != 0) {
			lines = append(lines, Line{s.Function, s.Want.Errno})
		}
	}
	return lines
}

// judgeReport reads the guest's report, a list of [value, body, meta].
func (r *Run) judgeReport(report []byte, origin string) error {
	var got [][3]json.RawMessage
	if err := json.Unmarshal(report, &got); err != nil {
		return fmt.Errorf("the guest's report is %.200q: %w", report, err)
	}
	if len(got) != len(r.Steps) {
		return fmt.Errorf("the guest reports %d calls of %d: %.200q", len(got), len(r.Steps), report)
	}
	var wrong []error
	for i, s := range r.Steps {
		var value int64
		if err := json.Unmarshal(got[i][0], &value); err != nil {
			return fmt.Errorf("the guest's report of %s: %w", s, err)
		}
		body, err := text(got[i][1])
		meta, err2 := text(got[i][2])
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("the guest's report of %s: %w", s, err)
		}
		if err := s.Want.judge(value, body, meta); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", s, err))
		}
	}
	return errors.Join(wrong...)
}

func text(raw json.RawMessage) ([]byte, error) {
	var digits string
	if err := json.Unmarshal(raw, &digits); err != nil {
		return nil, err
	}
	return hex.DecodeString(digits)
}

func (w *Want) judge(value int64, body, meta []byte) error {
	shown := func() string { return fmt.Sprintf("%s, result %.300q, meta %.300q", named(value), body, meta) }
	switch {
	case w.Errno != 0 && value != -int64(w.Errno):
		return fmt.Errorf("gave %s, not %s", shown(), w.Errno)
	case w.Errno == 0 && value < 0, w.Value != nil && value != *w.Value, value < w.Least && w.Errno == 0:
		return fmt.Errorf("gave %s, not %s", shown(), w)
	case w.Body != nil && string(body) != *w.Body, !bytes.Contains(body, []byte(w.Holds)), !strings.Contains(string(meta), w.Meta):
		return fmt.Errorf("gave %s, but must give: %s", shown(), w)
	}
	return nil
}

func named(value int64) string {
	if value < 0 {
		return abi.Errno(-value).String()
	}
	return fmt.Sprint(value)
}

// String is the line as a failed check shows it.
func (l Line) String() string {
	if l.Errno == 0 {
		return l.Function
	}
	return l.Function + " " + named(-int64(l.Errno))
}

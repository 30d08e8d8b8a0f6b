package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ecotone-dev/ecotone/guest/core"
)

// Level is how much a log record matters.
type Level = core.Level

// The levels of the log.
const (
	LevelDebug = core.LevelDebug
	LevelInfo  = core.LevelInfo
	LevelWarn  = core.LevelWarn
	LevelError = core.LevelError
)

// Input returns the invocation's input, one JSON value.
func Input() ([]byte, error) { return core.Input() }

// InputJSON decodes the input into v. Unknown fields and trailing data are refused: a
// misspelt field is a mistake of the caller that it wants to hear of.
func InputJSON(v any) error {
	data, err := core.Input()
	if err != nil {
		return err
	}
	return decode(data, v)
}

func decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &Failure{Code: "INPUT_INVALID", Message: err.Error()}
	}
	if rest := data[dec.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return &Failure{Code: "INPUT_INVALID", Message: "there is more after the value"}
	}
	return nil
}

// Output sets the invocation's output, one JSON value; a later call replaces it. ETOOBIG:
// it is over the environment's limit, and an earlier output is gone too.
func Output(data []byte) error { return core.Output(data) }

// OutputJSON sets the output to the JSON form of v.
func OutputJSON(v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	return core.Output(data)
}

// firstOutput is room for most answers.
const firstOutput = 512

// encode is json.Marshal without the escapes that only web pages need.
func encode(v any) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, firstOutput))
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Fail marks the invocation as failed, with the capability's own code (1 to 64 bytes of A-Z,
// 0-9 and _; anything else becomes FAILED) and a message, cut after 4 KiB. The output is
// dropped.
func Fail(code, message string) error { return core.Fail(code, message) }

// Failure is an error of the capability itself, as the caller will see it. Return one from a
// function given to [Handle].
type Failure struct {
	Code    string // 1 to 64 bytes of A-Z, 0-9 and _
	Message string
	Cause   error // not shown to the caller; errors.Is and errors.As look through it
}

// Failf makes a [Failure]. A %w operand becomes the cause and its text is in the message.
func Failf(code, format string, args ...any) *Failure {
	err := fmt.Errorf(format, args...)
	return &Failure{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Handle runs a capability: it decodes the input, calls do and sets the output. The result is
// what the export returns: 0, or 1 after the failure was reported. A [Failure] is reported as
// it is, a refusal of the host under the name of its [Errno], any other error as FAILED. A
// panic is not caught; it ends the module, and the host restores it.
func Handle[In, Out any](do func(In) (Out, error)) int32 {
	var in In
	if err := InputJSON(&in); err != nil {
		return report(err)
	}
	out, err := do(in)
	if err != nil {
		return report(err)
	}
	if err := OutputJSON(out); err != nil {
		return report(err)
	}
	return 0
}

func report(err error) int32 {
	code, message := "FAILED", err.Error()
	var own *Failure
	var refused Errno
	switch {
	case errors.As(err, &own):
		code, message = own.Code, own.Message
	case errors.As(err, &refused):
		code = refused.String()
	}
	// When even this is refused the invocation is over, and the host says why.
	_ = core.Fail(code, message)
	return 1
}

// Logf adds one record to the invocation's log. The host escapes control bytes, cuts long
// lines and drops records past the quota: logging never fails a capability.
func Logf(level Level, format string, args ...any) { core.Log(level, fmt.Sprintf(format, args...)) }

// Now is the host's clock, coarse: 1 ms in boundary environments, 1 µs elsewhere. It is the
// Unix epoch when the host no longer answers.
func Now() time.Time { return time.Unix(0, core.UnixNano()).UTC() }

// Random fills b from the host's cryptographic source. EQUOTA: the invocation used up its
// random bytes; b is not filled then. Prefer it over math/rand, whose package-level source is
// seeded when the module is initialised and is then the same in every invocation.
func Random(b []byte) error { return core.Random(b) }

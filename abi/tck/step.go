package tck

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// Step is one host call and what it must give.
type Step struct {
	Function string
	// Args are the arguments in the order of the table: text for a pair of pointer and length, a
	// number for the rest, and [Repeat], [Buffer], [Raw] or [Script] where those will not do.
	Args []any
	Want Want
}

// Want is what a call must give. The zero value wants success and nothing in particular.
type Want struct {
	Errno abi.Errno
	Value *int64  // the exact value
	Least int64   // a value at least this
	Body  *string // what is in the result register, or in the buffer the call fills
	Holds string  // what the body holds somewhere
	Meta  string  // what the document that describes the result holds somewhere
}

// Repeat is a text of N times Text.
type Repeat struct {
	N    int
	Text string
}

// Buffer is memory of the guest's own for N bytes, at most 256 KiB.
type Buffer struct{ N int }

// Raw is a pointer and a length as they are.
type Raw struct{ Ptr, Len uint32 }

// Version is a text: the version in the document that described the result before.
type Version struct{}

// Script is a text: the input that makes the kit's guest take steps and report nothing.
type Script []Step

// call is a call that must succeed, and give 0 when the table says that it returns nothing else.
func call(function string, args ...any) Step {
	s := Step{Function: function, Args: args}
	if row, ok := abi.FunctionByName(function); ok && row.Returns == "0" {
		return s.gives(0)
	}
	return s
}

func (s Step) fails(e abi.Errno) Step    { s.Want.Errno, s.Want.Value = e, nil; return s }
func (s Step) gives(n int64) Step        { s.Want.Value = &n; return s }
func (s Step) givesAtLeast(n int64) Step { s.Want.Least = n; return s }
func (s Step) body(text string) Step     { s.Want.Body = &text; return s }
func (s Step) holds(text string) Step    { s.Want.Holds = text; return s }
func (s Step) meta(text string) Step     { s.Want.Meta = text; return s }

// String is the call as the reference shows it.
func (s Step) String() string {
	var args []string
	for _, a := range s.Args {
		switch a := a.(type) {
		case string:
			args = append(args, quoted(a))
		case Repeat:
			args = append(args, fmt.Sprintf("%d × %s", a.N, quoted(a.Text)))
		case Script:
			args = append(args, "a script: "+listed(a))
		case Buffer:
			args = append(args, "buffer")
		case Version:
			args = append(args, "version")
		case Raw:
			args = append(args, fmt.Sprintf("%#x, %d", a.Ptr, a.Len))
		default:
			args = append(args, fmt.Sprint(a))
		}
	}
	if b, ok := first(s.Args).(Buffer); ok { // the length is the last parameter
		args = append(args, strconv.Itoa(b.N))
	}
	return s.Function + "(" + strings.Join(args, ", ") + ")"
}

func first(args []any) any {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

func quoted(text string) string {
	if !utf8.ValidString(text) {
		return "hexadecimal " + hex.EncodeToString([]byte(text))
	}
	if strings.ContainsRune(text, '"') && !strings.ContainsAny(text, "`\n") {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

func listed(steps []Step) string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = s.String()
	}
	return strings.Join(all, "; ")
}

// Result is what the call must give, as the reference shows it.
func (w Want) String() string {
	if w.Errno != 0 {
		return fmt.Sprintf("-%d, %s", w.Errno, w.Errno)
	}
	var parts []string
	switch {
	case w.Value != nil:
		parts = append(parts, strconv.FormatInt(*w.Value, 10))
	case w.Least > 0:
		parts = append(parts, fmt.Sprintf("at least %d", w.Least))
	default:
		parts = append(parts, "0 or more")
	}
	if w.Body != nil {
		parts = append(parts, "the result is "+quoted(*w.Body))
	}
	if w.Holds != "" {
		parts = append(parts, "the result holds "+quoted(w.Holds))
	}
	if w.Meta != "" {
		parts = append(parts, "meta holds "+quoted(w.Meta))
	}
	return strings.Join(parts, "; ")
}

// portable reports whether bindings that know no raw pointers can make the call.
func (s Step) portable() bool {
	for _, a := range s.Args {
		switch a := a.(type) {
		case Raw:
			return false
		case Script:
			if !all(a, Step.portable) {
				return false
			}
		}
	}
	return true
}

func all(steps []Step, is func(Step) bool) bool {
	for _, s := range steps {
		if !is(s) {
			return false
		}
	}
	return true
}

// encode writes a script as the guest reads it: a JSON string.
func encode(steps []Step, silent bool, origin string) string {
	var b strings.Builder
	b.WriteByte('"')
	if silent {
		b.WriteByte('!')
	}
	for i, s := range steps {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(s.Function)
		for _, a := range s.Args {
			b.WriteByte(' ')
			b.WriteString(word(a, origin))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func word(arg any, origin string) string {
	switch a := arg.(type) {
	case string:
		return "x" + hex.EncodeToString([]byte(strings.ReplaceAll(a, originURL, origin)))
	case Script:
		return "x" + hex.EncodeToString([]byte(encode(a, true, origin)))
	case Repeat:
		return fmt.Sprintf("r%d:%x", a.N, a.Text)
	case Buffer:
		return "b" + strconv.Itoa(a.N)
	case Version:
		return "v"
	case Raw:
		return fmt.Sprintf("p%d:%d", a.Ptr, a.Len)
	case int:
		return "n" + strconv.Itoa(a)
	}
	panic(fmt.Sprintf("tck: an argument of type %T", arg))
}

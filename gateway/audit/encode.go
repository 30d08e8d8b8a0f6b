package audit

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/ecotone-dev/ecotone/abi"
)

// maxBody is how long the clear text of one entry may be.
const maxBody = maxPayload - headerFixed - 63 - sealOverhead

var errTooLong = errors.New("larger than an entry may be")

// encode checks an event and writes its body into the request, bounded. The two bodies that every
// invocation has are written without the reflection and the copies of encoding/json; whatever is
// unusual about them takes the way of the others, and a test holds the two ways to be one.
func (r *request) encode(ev *Event) error {
	var kind Kind
	var fast bool
	switch b := ev.Body.(type) {
	case nil:
		return refuse("it has no body")
	case *Decided:
		if b == nil {
			return refuse("it has no body")
		}
		if err := b.check(); err != nil {
			return err
		}
		kind, r.open, r.waits = KindDecided, b.Verdict == VerdictAllow, b.Verdict == VerdictNeedsApproval
		r.body, fast = appendDecided(r.body[:0], b)
	case *Ended:
		if b == nil {
			return refuse("it has no body")
		}
		if err := b.check(); err != nil {
			return err
		}
		kind = KindEnded
		r.body, fast = appendEnded(r.body[:0], b)
	default:
		kind = b.Kind()
	}
	if !fast || len(r.body) > maxBody {
		settled, err := ev.Body.settle()
		if err != nil {
			return err
		}
		data, err := marshal(settled)
		if err != nil {
			return refuse("it does not encode: %w", err)
		}
		switch b := settled.(type) {
		case Decided:
			r.open, r.waits = b.Verdict == VerdictAllow, b.Verdict == VerdictNeedsApproval
		case Resolved:
			r.open = b.Resolution == ResolvedApproved
		}
		r.body = append(r.body[:0], data...)
	}
	if ev.ID == "" && standalone(kind) {
		ev.ID = NewID()
	}
	id, ok := ulidOf(ev.ID)
	if !ok {
		return refuse("its id is not a ULID")
	}
	r.kind, r.id, r.at.ID = kind, id, ev.ID
	return nil
}

// marshal writes a body and keeps it within one entry. Only a receipt can be too long; its
// lines are halved until it fits.
func marshal(b Body) ([]byte, error) {
	for {
		data, err := json.Marshal(b)
		if err != nil || len(data) <= maxBody {
			return data, err
		}
		e, ok := b.(Ended)
		if !ok || len(e.Lines) == 0 {
			return nil, errTooLong
		}
		keep := len(e.Lines) / 2
		e.LinesOmitted += len(e.Lines) - keep
		e.Lines = e.Lines[:keep]
		b = e
	}
}

// object writes one JSON object as encoding/json does, members in the order of the calls. plain
// goes false when something is not plain; what was written is then good for nothing.
type object struct {
	b     []byte
	plain bool
}

// name begins a member; n is its name as it is written, with the quotes and the colon.
func (o *object) name(n string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, n...)
}

// text writes a string of printable ASCII within the bound that needs no escape.
func (o *object) text(s string) {
	if len(s) > maxText {
		o.plain = false
		return
	}
	for i := range len(s) {
		if !plainASCII[s[i]] {
			o.plain = false
			return
		}
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, s...)
	o.b = append(o.b, '"')
}

// plainASCII are the bytes that encoding/json writes as they are.
var plainASCII = func() (set [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		set[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return set
}()

func (o *object) str(n, s string) {
	o.name(n)
	o.text(s)
}

func (o *object) strIf(n, s string) {
	if s != "" {
		o.str(n, s)
	}
}

func (o *object) int(n string, v int64) {
	o.name(n)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) intIf(n string, v int64) {
	if v != 0 {
		o.int(n, v)
	}
}

func (o *object) label(n string, c abi.Classification) {
	if c != 0 {
		o.plain = o.plain && c.Valid()
		o.str(n, c.String())
	}
}

func (o *object) subject(n string, s *SubjectRef) {
	o.name(n)
	o.b = append(o.b, '{')
	o.str(`"kind":`, s.Kind)
	o.str(`"id":`, s.ID)
	o.b = append(o.b, '}')
}

// next begins an element of a list.
func (o *object) next(i int) {
	if i > 0 {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '{')
}

// appendDecided appends what json.Marshal writes of the settled event, or says that it did not.
func appendDecided(b []byte, d *Decided) ([]byte, bool) {
	if len(d.Checks) > maxList || len(d.Suggestions) > maxList || len(d.Grants) > maxList || len(d.Chain) > maxList {
		return b, false
	}
	o := object{b: append(b, '{'), plain: true}
	o.subject(`"subject":`, &d.Subject)
	if d.User != nil {
		o.subject(`"user":`, d.User)
	}
	o.str(`"callerKind":`, d.CallerKind)
	o.strIf(`"callerOrigin":`, d.Origin)
	o.str(`"space":`, d.Space)
	o.str(`"environment":`, string(d.Environment))
	o.str(`"capability":`, string(d.Capability))
	o.strIf(`"parentInvocationId":`, d.Parent)
	o.strIf(`"rootInvocationId":`, d.Root)
	o.strs(`"chain":`, d.Chain)
	o.str(`"session":`, d.Session)
	o.strIf(`"workspace":`, d.Workspace)
	o.strIf(`"traceId":`, d.Trace)
	o.strIf(`"inputDigest":`, d.InputDigest)
	o.int(`"inputBytes":`, d.InputBytes)
	o.str(`"verdict":`, string(d.Verdict))
	o.strIf(`"code":`, string(d.Code))
	if len(d.Checks) > 0 {
		o.name(`"checks":`)
		o.b = append(o.b, '[')
		for i := range d.Checks {
			c := &d.Checks[i]
			o.next(i)
			o.str(`"name":`, c.Name)
			o.str(`"verdict":`, c.Verdict)
			o.strIf(`"code":`, string(c.Code))
			o.strIf(`"detail":`, c.Detail)
			o.b = append(o.b, '}')
		}
		o.b = append(o.b, ']')
	}
	o.suggestions(d.Suggestions)
	o.strIf(`"biome":`, d.Biome)
	o.strIf(`"digest":`, d.Digest)
	o.name(`"policyGeneration":`)
	o.b = strconv.AppendUint(o.b, d.Generation, 10)
	o.strs(`"grants":`, d.Grants)
	o.strIf(`"reachCheck":`, d.ReachCheck)
	if d.Reach != 0 {
		o.plain = o.plain && d.Reach.Valid()
		o.str(`"reach":`, d.Reach.String())
	}
	o.label(`"declaredClassification":`, d.Declared)
	o.label(`"label":`, d.Label)
	o.label(`"ceiling":`, d.Ceiling)
	o.label(`"clearance":`, d.Clearance)
	o.strIf(`"lifecycle":`, d.Lifecycle)
	o.strIf(`"replacedBy":`, string(d.ReplacedBy))
	o.strIf(`"declassification":`, d.Declassification)
	return append(o.b, '}'), o.plain
}

// appendEnded appends what json.Marshal writes of the settled event, or says that it did not.
func appendEnded(b []byte, e *Ended) ([]byte, bool) {
	if len(e.Lines) > MaxLines || e.Cancel != nil {
		return b, false
	}
	o := object{b: append(b, '{'), plain: true}
	o.str(`"outcome":`, string(e.Outcome))
	o.strIf(`"code":`, string(e.Code))
	o.name(`"released":`)
	o.b = strconv.AppendBool(o.b, e.Released)
	o.label(`"label":`, e.Label)
	o.int(`"outputBytes":`, e.OutputBytes)
	o.int(`"durationMs":`, e.DurationMS)
	o.intIf(`"fuel":`, e.Fuel)
	o.intIf(`"peakMemory":`, e.PeakMemory)
	o.int(`"hostCalls":`, e.HostCalls)
	o.intIf(`"logBytes":`, e.LogBytes)
	if e.Generation > 0 {
		o.name(`"policyGeneration":`)
		o.b = strconv.AppendUint(o.b, e.Generation, 10)
	}
	if len(e.Lines) > 0 {
		o.name(`"lines":`)
		o.b = append(o.b, '[')
		for i := range e.Lines {
			l := &e.Lines[i]
			o.next(i)
			o.int(`"line":`, int64(l.Line))
			o.str(`"function":`, l.Function)
			o.strIf(`"target":`, l.Target)
			o.strIf(`"secret":`, l.Secret)
			o.strIf(`"code":`, string(l.Code))
			o.intIf(`"bytesIn":`, l.BytesIn)
			o.intIf(`"bytesOut":`, l.BytesOut)
			o.label(`"label":`, l.Label)
			o.b = append(o.b, '}')
		}
		o.b = append(o.b, ']')
	}
	o.suggestions(e.Suggestions)
	o.intIf(`"linesOmitted":`, int64(e.LinesOmitted))
	if len(e.Unknown) > 0 {
		o.name(`"unknownEffects":`)
		o.b = append(o.b, '[')
		for i, n := range e.Unknown {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = strconv.AppendInt(o.b, int64(n), 10)
		}
		o.b = append(o.b, ']')
	}
	return append(o.b, '}'), o.plain
}

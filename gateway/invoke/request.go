package invoke

import (
	"strconv"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Request is what a caller sent, unparsed. Nothing in it names an environment, a space or a
// subject: those come from the session (X27).
type Request struct {
	Face          string // which door it came through: http, mcp
	Authorization string
	Ref           string
	Input         []byte // the pipeline's from here on
	Caller        Caller // nil: nobody's going away is noticed, and no address recorded

	Classification    string
	HasClassification bool
	DeadlineMS        string
	HasDeadline       bool

	// Declassification is the id of an approved request to declassify; To and Sink are such a request's own.
	Declassification    string
	HasDeclassification bool
	To, Sink            string

	Proxied bool   // a reverse proxy's headers were present (S19)
	Trace   string // traceparent
	Method  string
	Route   string
}

func (r *Request) remote() string {
	if r.Caller == nil {
		return ""
	}
	return r.Caller.Address()
}

// Answer is what goes back. Exactly one of Output and Problem is set.
type Answer struct {
	Invocation string // ULID; "" when the request never became an invocation
	Status     int    // 0 is 200
	Output     []byte
	Label      abi.Classification
	Location   string // where to look for what comes of it
	Fuel       int64  // that the invocation used; 0: nothing ran, or it is not for the caller to know (S6)
	// ReplacedBy is what to invoke instead of the capability, when it is deprecated or retired and has a
	// successor (X61).
	ReplacedBy abi.CapabilityRef
	Problem    *problem.Document
}

const bearer = "Bearer "

// authenticate finds the session a request speaks for.
func (p *Pipeline) authenticate(r *Request) (*session.Session, *abi.Error) {
	token, ok := strings.CutPrefix(r.Authorization, bearer)
	if !ok {
		return nil, abi.Errorf(abi.CodeUnauthenticated, "the request carries no bearer token").
			WithHint("send Authorization: Bearer eco_s_…, the token of a session")
	}
	s, err := p.o.Policy.Invoker(token)
	if err != nil {
		return nil, abi.AsError(err)
	}
	if s.Dev && r.Proxied {
		return nil, abi.Errorf(abi.CodeForwardedRefused, "development sessions are not served through a proxy")
	}
	return s, nil
}

// Recognises reports whether an Authorization header is that of an open session. It is asked
// before a body is read; the request itself is authenticated once all of it is there, because
// the session's mark is what it is then (S3).
func (p *Pipeline) Recognises(authorization string) bool {
	_, refused := p.authenticate(&Request{Authorization: authorization})
	return refused == nil
}

// Admit reports why a request may not come in, nil when it may, and the id of the session that it speaks
// for. Whatever it asks for is judged, as everything is, when it is asked.
func (p *Pipeline) Admit(r Request) (session string, refused *abi.Error) {
	s, refused := p.authenticate(&r)
	if refused != nil {
		return "", refused
	}
	return s.ID, nil
}

// terms are the parts of a request that a caller may choose.
type terms struct {
	ref      abi.CapabilityRef
	declared abi.Classification // invalid: nothing was declared
	deadline time.Time          // zero: only the limits bind
	trace    traced
}

// maxDeadline bounds what a caller may ask for; the environment's own limit is lower.
const maxDeadline = 10 * time.Minute

func parseTerms(r *Request, now time.Time) (terms, *abi.Error) {
	var t terms
	ref, err := abi.ParseCapabilityRef(r.Ref)
	if err != nil {
		return t, abi.AsError(err)
	}
	t.ref = ref
	if r.HasClassification {
		if t.declared, err = abi.ParseClassification(r.Classification); err != nil {
			return t, abi.AsError(err).At("Ecotone-Classification")
		}
	}
	if r.HasDeadline {
		ms, err := strconv.ParseUint(r.DeadlineMS, 10, 32)
		d := time.Duration(ms) * time.Millisecond
		if err != nil || d < time.Millisecond || d > maxDeadline || strconv.FormatUint(ms, 10) != r.DeadlineMS {
			return t, abi.Errorf(abi.CodeInvalidRequest, "Ecotone-Deadline-Ms must be a whole number from 1 to %d", maxDeadline.Milliseconds()).
				At("Ecotone-Deadline-Ms")
		}
		t.deadline = now.Add(d)
	}
	t.trace = tracedBy(r.Trace)
	return t, nil
}

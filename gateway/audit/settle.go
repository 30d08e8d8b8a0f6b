package audit

import (
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// Bounds of what one event may hold. Text over its bound is cut and marked; lists over
// theirs are cut, and the receipt says by how much.
const (
	MaxLines = 4096 // receipt lines of one ended event
	maxList  = 128  // checks, suggestions, grants, field names
	maxText  = 512  // bytes of any one text
)

// text bounds untrusted text. JSON escapes its control bytes; a cut is visible.
func text(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= maxText {
		return s
	}
	cut := maxText - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func texts(fields ...*string) {
	for _, f := range fields {
		*f = text(*f)
	}
}

// list copies at most maxList elements, so that what is stored is not shared with the caller.
func list[T any](in []T, each func(*T)) []T {
	if len(in) == 0 {
		return nil
	}
	out := append([]T(nil), in[:min(len(in), maxList)]...)
	for i := range out {
		each(&out[i])
	}
	return out
}

func refuse(format string, args ...any) error {
	return abi.Errorf(abi.CodeAuditUnavailable, "the audit event is not complete: "+format, args...)
}

func need(what, value string) error {
	if value == "" {
		return refuse("%s is missing", what)
	}
	return nil
}

func known(c abi.Code) error {
	if c == "" {
		return nil
	}
	if _, ok := c.Info(); !ok {
		return refuse("code %s is not in the catalogue", abi.Quote(string(c)))
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check refuses a decision that is not complete.
func (d *Decided) check() error {
	if !d.Verdict.Valid() {
		return refuse("verdict %s is not one of allow, deny, needs_approval", abi.Quote(string(d.Verdict)))
	}
	if err := first(
		need("subject kind", d.Subject.Kind), need("subject id", d.Subject.ID), need("caller kind", d.CallerKind),
		need("space", d.Space), need("environment", string(d.Environment)), need("capability", string(d.Capability)),
		need("session", d.Session), known(d.Code),
	); err != nil {
		return err
	}
	if d.Verdict == VerdictDeny && d.Code == "" {
		return refuse("a denial has a code")
	}
	if _, ok := ulidOf(d.Parent); d.Parent != "" && !ok {
		return refuse("the parent's id is not a ULID")
	}
	if _, ok := ulidOf(d.Root); d.Root != "" && !ok {
		return refuse("the root's id is not a ULID")
	}
	if (d.Root == "") != (d.Parent == "") {
		return refuse("a child has a parent and a root")
	}
	return nil
}

func (d Decided) settle() (Body, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	env, ref, instead := string(d.Environment), string(d.Capability), string(d.ReplacedBy)
	texts(&d.Subject.Kind, &d.Subject.ID, &d.CallerKind, &d.Origin, &d.Space, &env, &ref, &d.Session, &d.Workspace,
		&d.Trace, &d.InputDigest, &d.Biome, &d.Digest, &d.ReachCheck, &d.Lifecycle, &instead, &d.Declassification)
	d.Environment, d.Capability, d.ReplacedBy = abi.EnvironmentRef(env), abi.CapabilityRef(ref), abi.CapabilityRef(instead)
	if d.User != nil {
		u := *d.User
		texts(&u.Kind, &u.ID)
		d.User = &u
	}
	d.Checks = list(d.Checks, func(c *Check) { texts(&c.Name, &c.Verdict, &c.Detail) })
	d.Suggestions = settleSuggestions(d.Suggestions)
	d.Grants = list(d.Grants, func(s *string) { texts(s) })
	d.Chain = list(d.Chain, func(s *string) { texts(s) })
	return d, nil
}

func (r Resolved) settle() (Body, error) {
	if !r.Resolution.Valid() {
		return nil, refuse("resolution %s is not known", abi.Quote(string(r.Resolution)))
	}
	if (r.Resolution == ResolvedApproved) != (r.Code == "") {
		return nil, refuse("what is not approved has a code, and nothing else has")
	}
	texts(&r.By)
	return r, known(r.Code)
}

func (s Started) settle() (Body, error) { return s, nil }

func (e Effect) settle() (Body, error) {
	texts(&e.Function, &e.Target)
	return e, need("function", e.Function)
}

func (e EffectClosed) settle() (Body, error) { return e, known(e.Code) }

// check refuses an outcome that is not complete.
func (e *Ended) check() error {
	switch e.Outcome {
	case OutcomeCompleted, OutcomeFailed, OutcomeInterrupted:
	default:
		return refuse("outcome %s is not known", abi.Quote(string(e.Outcome)))
	}
	if e.Outcome == OutcomeFailed && e.Code == "" {
		return refuse("a failed run has a code")
	}
	return known(e.Code)
}

func (e Ended) settle() (Body, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	keep := min(len(e.Lines), MaxLines)
	e.LinesOmitted += len(e.Lines) - keep
	e.Lines = append([]Line(nil), e.Lines[:keep]...)
	for i := range e.Lines {
		texts(&e.Lines[i].Function, &e.Lines[i].Target, &e.Lines[i].Secret)
	}
	e.Suggestions = settleSuggestions(e.Suggestions)
	return e, nil
}

func (r Refused) settle() (Body, error) {
	texts(&r.Listener, &r.Method, &r.Route, &r.Remote, &r.Detail)
	if r.Subject != nil {
		s := *r.Subject
		texts(&s.Kind, &s.ID)
		r.Subject = &s
	}
	return r, first(need("code", string(r.Code)), known(r.Code))
}

func (a Admin) settle() (Body, error) {
	texts(&a.Operation, &a.Actor, &a.Role, &a.ObjectKind, &a.Object)
	a.Fields = list(a.Fields, func(s *string) { texts(s) })
	return a, first(need("operation", a.Operation), need("actor", a.Actor), known(a.Code))
}

func (s System) settle() (Body, error) {
	texts(&s.Event, &s.Version, &s.Org, &s.Durability, &s.Detail)
	return s, need("event", s.Event)
}

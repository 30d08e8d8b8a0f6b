package audit

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
)

// Kind is the closed set of events. The numbers are part of the file format.
type Kind uint8

const (
	KindDecided      Kind = iota + 1 // the gate's decision and the whole envelope; a denied row has nothing else
	KindStarted                      // the intent: durable before the first external or mutating host call
	KindEffect                       // an external effect is about to happen
	KindEffectClosed                 // how it ended
	KindEnded                        // the outcome: durable before the answer
	KindRefused                      // refused before there was a session: no credential, not a request
	KindAdmin                        // somebody changed, or tried to change, a setting
	KindSystem                       // start, stop, recovery, erasure
	KindResolved                     // what came of waiting for a person: nothing, or the row goes on
	numKinds
)

var kindNames = [numKinds]string{
	KindDecided: "decided", KindStarted: "started", KindEffect: "effect", KindEffectClosed: "effect-closed",
	KindEnded: "ended", KindRefused: "refused", KindAdmin: "admin", KindSystem: "system", KindResolved: "resolved",
}

// Valid reports whether k is a member of the set.
func (k Kind) Valid() bool { return k >= KindDecided && k < numKinds }

func (k Kind) String() string {
	if !k.Valid() {
		return "invalid"
	}
	return kindNames[k]
}

// SystemOrg owns the events that belong to no organisation: the process itself, and requests
// refused before it was known who asked.
const SystemOrg = "system"

// Event is what callers append.
type Event struct {
	// Org owns the event and its key seals it; "" is [SystemOrg].
	Org string
	// ID is the row's ULID: the invocation's, for the six kinds of an invocation. For the
	// others it may be empty, and a new one is made.
	ID string
	// Body is one of the nine kinds.
	Body Body
}

// Body is implemented by [Decided], [Resolved], [Started], [Effect], [EffectClosed], [Ended], [Refused],
// [Admin] and [System] and by nothing else.
type Body interface {
	Kind() Kind
	// settle returns the body as it is stored (bounded, printable), or why it is refused.
	settle() (Body, error)
}

// NewID returns a new row id: a ULID of now.
func NewID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// Position says where an appended event is.
type Position struct {
	Index uint64 // of the entry, which is its leaf in the tree
	ID    string // the row's ULID; what problem documents call auditId
	Time  time.Time
}

// Verdict is the closed set of decisions (X43).
type Verdict string

const (
	VerdictAllow         Verdict = "allow"
	VerdictDeny          Verdict = "deny"
	VerdictNeedsApproval Verdict = "needs_approval"
)

// Valid reports whether v is a member of the set.
func (v Verdict) Valid() bool {
	return v == VerdictAllow || v == VerdictDeny || v == VerdictNeedsApproval
}

// SubjectRef is a subject in two parts, as the envelope has it (X28).
type SubjectRef struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// RefOf splits a subject. The empty subject gives the empty ref.
func RefOf(s abi.Subject) SubjectRef {
	if s == "" {
		return SubjectRef{}
	}
	return SubjectRef{Kind: string(s.Kind()), ID: s.ID()}
}

// Envelope is who asked for what, where (X28). Subject, CallerKind, Space, Environment,
// Capability and Session are mandatory. The input is present as a keyed digest and a
// length, never as a value (S6, PF-G8).
type Envelope struct {
	Subject     SubjectRef         `json:"subject"`
	User        *SubjectRef        `json:"user,omitempty"` // the user an agent acts for
	CallerKind  string             `json:"callerKind"`     // user, agent, workflow, app, service, runner, biome
	Origin      string             `json:"callerOrigin,omitempty"`
	Space       string             `json:"space"`
	Environment abi.EnvironmentRef `json:"environment"`
	Capability  abi.CapabilityRef  `json:"capability"`
	Parent      string             `json:"parentInvocationId,omitempty"`
	Root        string             `json:"rootInvocationId,omitempty"` // the outermost invocation that this is made for; of a child
	Chain       []string           `json:"chain,omitempty"`            // capabilities from the root to the parent
	Session     string             `json:"session"`
	Workspace   string             `json:"workspace,omitempty"`
	Trace       string             `json:"traceId,omitempty"`
	InputDigest string             `json:"inputDigest,omitempty"` // [Log.Digest]
	InputBytes  int64              `json:"inputBytes"`
}

// Check is one check of the gate, in the gate's order.
type Check struct {
	Name    string   `json:"name"`
	Verdict string   `json:"verdict"` // pass, fail, deferred, skipped, waived … as the gate says
	Code    abi.Code `json:"code,omitempty"`
	Detail  string   `json:"detail,omitempty"`
}

// Decided is the gate's decision.
type Decided struct {
	Envelope
	Verdict     Verdict            `json:"verdict"`
	Code        abi.Code           `json:"code,omitempty"` // of the first failed check; empty for allow
	Checks      []Check            `json:"checks,omitempty"`
	Suggestions []Suggestion       `json:"suggestions,omitempty"`
	Biome       string             `json:"biome,omitempty"`
	Digest      string             `json:"digest,omitempty"` // of manifest and module, hex
	Generation  uint64             `json:"policyGeneration"`
	Grants      []string           `json:"grants,omitempty"`
	ReachCheck  string             `json:"reachCheck,omitempty"` // enforced, deferred
	Reach       abi.Reach          `json:"reach,omitzero"`
	Declared    abi.Classification `json:"declaredClassification,omitzero"`
	Label       abi.Classification `json:"label,omitzero"` // the invocation starts with
	Ceiling     abi.Classification `json:"ceiling,omitzero"`
	Clearance   abi.Classification `json:"clearance,omitzero"`   // of the answer
	Lifecycle   string             `json:"lifecycle,omitempty"`  // deprecated or retired, when the capability is
	ReplacedBy  abi.CapabilityRef  `json:"replacedBy,omitempty"` // what to invoke instead of such a one
	// Declassification is the approval that it named, by which it may begin lower than its session's mark.
	Declassification string `json:"declassification,omitempty"`
}

// Resolution is the closed set of what comes of waiting for a person.
type Resolution string

// The resolutions. Only what is approved goes on.
const (
	ResolvedApproved  Resolution = "approved" // and used up: it runs now
	ResolvedRejected  Resolution = "rejected"
	ResolvedExpired   Resolution = "expired"
	ResolvedWithdrawn Resolution = "withdrawn" // by who asked
	ResolvedStale     Resolution = "stale"     // what was approved is not what there is any more
	ResolvedRefused   Resolution = "refused"   // nobody was asked
)

// Valid reports whether r is a member of the set.
func (r Resolution) Valid() bool {
	switch r {
	case ResolvedApproved, ResolvedRejected, ResolvedExpired, ResolvedWithdrawn, ResolvedStale, ResolvedRefused:
		return true
	}
	return false
}

// Resolved ends the waiting of an invocation that needed an approval (X42).
type Resolved struct {
	Resolution Resolution `json:"resolution"`
	Code       abi.Code   `json:"code,omitempty"` // empty: it was approved
	By         string     `json:"by,omitempty"`   // principal that decided, or the subject that withdrew it
}

// Started is the durable intent (S8). It has nothing to say beyond its header.
type Started struct{}

// Effect announces one external effect before it acts (S8).
type Effect struct {
	Line     int    `json:"line"` // in the receipt
	Function string `json:"function"`
	Target   string `json:"target"`
}

// EffectClosed says how an announced effect ended.
type EffectClosed struct {
	Line int      `json:"line"`
	Code abi.Code `json:"code,omitempty"` // empty: it succeeded
}

// Outcome is how a run ended.
type Outcome string

const (
	OutcomeCompleted   Outcome = "completed"
	OutcomeFailed      Outcome = "failed"      // Code says why
	OutcomeInterrupted Outcome = "interrupted" // the process died; written by [Log.Recover]
)

// Line is one host call of the receipt.
type Line struct {
	Line     int                `json:"line"`
	Function string             `json:"function"`
	Target   string             `json:"target,omitempty"`
	Secret   string             `json:"secret,omitempty"` // that a request named
	Code     abi.Code           `json:"code,omitempty"`   // empty: it was allowed and succeeded
	BytesIn  int64              `json:"bytesIn,omitempty"`
	BytesOut int64              `json:"bytesOut,omitempty"`
	Label    abi.Classification `json:"label,omitzero"` // of the invocation afterwards
}

// Ended is the outcome and the receipt of a run. Lines past [MaxLines] are cut and
// counted in LinesOmitted; effects have entries of their own and are never cut.
type Ended struct {
	Outcome      Outcome            `json:"outcome"`
	Code         abi.Code           `json:"code,omitempty"`
	Released     bool               `json:"released"` // the output was given to the caller
	Label        abi.Classification `json:"label,omitzero"`
	OutputBytes  int64              `json:"outputBytes"`
	DurationMS   int64              `json:"durationMs"`
	Fuel         int64              `json:"fuel,omitempty"`
	PeakMemory   int64              `json:"peakMemory,omitempty"` // bytes
	HostCalls    int64              `json:"hostCalls"`
	LogBytes     int64              `json:"logBytes,omitempty"`
	Generation   uint64             `json:"policyGeneration,omitempty"` // of the policy that was in force at the end; it still allowed an answer that was released
	Lines        []Line             `json:"lines,omitempty"`
	Suggestions  []Suggestion       `json:"suggestions,omitempty"` // what would have let refused host calls through
	LinesOmitted int                `json:"linesOmitted,omitempty"`
	// Unknown lists the receipt lines of effects that were announced and never closed.
	Unknown []int `json:"unknownEffects,omitempty"`
	// Cancel is nil unless the caller asked for the end while it ran.
	Cancel *Cancel `json:"cancel,omitempty"`
}

// Refused is a request that was refused before there was a session (PF-G1).
type Refused struct {
	Code     abi.Code    `json:"code"`
	Listener string      `json:"listener,omitempty"` // invoke, mcp, admin, ops
	Method   string      `json:"method,omitempty"`
	Route    string      `json:"route,omitempty"` // the route's pattern, not the path that was sent
	Remote   string      `json:"remote,omitempty"`
	Subject  *SubjectRef `json:"subject,omitempty"`
	Detail   string      `json:"detail,omitempty"`
}

// Admin is an act of administration, done or refused (P6). Fields are names; values never
// get here.
type Admin struct {
	Operation  string   `json:"operation"` // environment.updated, grant.created …
	Actor      string   `json:"actor"`     // principal
	Role       string   `json:"role,omitempty"`
	ObjectKind string   `json:"objectKind,omitempty"`
	Object     string   `json:"object,omitempty"`
	Fields     []string `json:"fields,omitempty"`
	Code       abi.Code `json:"code,omitempty"` // empty: it was done
}

// System is an event of the process itself.
type System struct {
	Event       string `json:"event"` // started, stopped, recovered, erased
	Version     string `json:"version,omitempty"`
	Org         string `json:"org,omitempty"`
	Interrupted int    `json:"interrupted,omitempty"` // rows closed by recovery
	CutBytes    int64  `json:"cutBytes,omitempty"`    // torn bytes removed at open
	Adopted     int64  `json:"adopted,omitempty"`     // entries that no head covered at open, and were kept
	Durability  string `json:"durability,omitempty"`  // of the log, since started
	Detail      string `json:"detail,omitempty"`
}

func (Decided) Kind() Kind      { return KindDecided }
func (Started) Kind() Kind      { return KindStarted }
func (Effect) Kind() Kind       { return KindEffect }
func (EffectClosed) Kind() Kind { return KindEffectClosed }
func (Ended) Kind() Kind        { return KindEnded }
func (Refused) Kind() Kind      { return KindRefused }
func (Admin) Kind() Kind        { return KindAdmin }
func (System) Kind() Kind       { return KindSystem }
func (Resolved) Kind() Kind     { return KindResolved }

// Entry is an event as it was recorded.
type Entry struct {
	Index uint64
	Time  time.Time
	Org   string
	ID    string
	Body  Body
}

// decodeBody reads the sealed clear text of one kind.
func decodeBody(k Kind, data []byte) (Body, error) {
	switch k {
	case KindDecided:
		return decodeAs[Decided](data)
	case KindStarted:
		return decodeAs[Started](data)
	case KindEffect:
		return decodeAs[Effect](data)
	case KindEffectClosed:
		return decodeAs[EffectClosed](data)
	case KindEnded:
		return decodeAs[Ended](data)
	case KindRefused:
		return decodeAs[Refused](data)
	case KindAdmin:
		return decodeAs[Admin](data)
	case KindSystem:
		return decodeAs[System](data)
	case KindResolved:
		return decodeAs[Resolved](data)
	}
	return nil, abi.Errorf(abi.CodeInternal, "an audit entry has an unknown kind")
}

func decodeAs[T Body](data []byte) (Body, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "an audit entry does not decode: %w", err)
	}
	return v, nil
}

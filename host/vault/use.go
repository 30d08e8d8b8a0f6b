package vault

import (
	"fmt"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Kinds of use.
const (
	KindHeader = "header" // the host sends the value in one request header
	KindHMAC   = "hmac"   // the value is the key of HMAC-SHA-256 over prefix ‖ message
)

// Bounds of uses.
const (
	MaxUses        = 8
	MinPrefixBytes = 8   // of an hmac prefix: without one the guest would choose the whole message (S15)
	MaxPrefixBytes = 256 // of either prefix
)

// Use is one way in which a secret may be used.
//
//	{"kind":"header","header":"Authorization","prefix":"Bearer ","endpoint":"crm"}
//	{"kind":"header","header":"X-Api-Key","host":"api.example.com","path":"/v1/**"}
//	{"kind":"hmac","prefix":"webhook.v1:","label":"internal"}
//
// A header goes toward requests that the named endpoint admits, or to one exact host, port
// and path over https. An hmac has a label of its own, which its signature brings into the
// invocation.
type Use struct {
	Kind     string             `json:"kind"`
	Prefix   string             `json:"prefix,omitempty"`
	Header   string             `json:"header,omitempty"`
	Endpoint string             `json:"endpoint,omitempty"`
	Host     string             `json:"host,omitempty"`
	Port     int                `json:"port,omitempty"` // with Host; 0 is 443
	Path     string             `json:"path,omitempty"` // with Host
	Label    abi.Classification `json:"label,omitzero"`
}

// Check refuses uses and values that would not be safe or not be enforced: UNSUPPORTED_RULE
// for a use, INVALID_REQUEST for a value, each naming its field and never the value.
func Check(uses []Use, value Value) error {
	if n := len(uses); n == 0 || n > MaxUses {
		return unsupported("/uses", "a secret has 1 to %d uses", MaxUses)
	}
	hmacs := 0
	for i := range uses {
		at := fmt.Sprintf("/uses/%d", i)
		if err := uses[i].check(at); err != nil {
			return err
		}
		if uses[i].Kind == KindHMAC {
			hmacs++
		}
	}
	if hmacs > 1 {
		return unsupported("/uses", "a secret signs for one prefix only")
	}
	if n := value.Len(); n < MinValueBytes || n > MaxValueBytes {
		return abi.Errorf(abi.CodeInvalidRequest, "a secret's value has %d to %d bytes", MinValueBytes, MaxValueBytes).At("/value").
			WithHint("shorter values can be guessed")
	}
	if hmacs < len(uses) && !headerSafe(value.Reveal()) {
		return abi.Errorf(abi.CodeInvalidRequest, "a value that is sent in a header is printable ASCII without spaces at its ends").At("/value")
	}
	return nil
}

func unsupported(at, format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodeUnsupportedRule, format, args...).At(at)
}

// headerSafe is [egress.HeaderValue] without making a string of the value.
func headerSafe(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return len(b) > 0 && b[0] != ' ' && b[len(b)-1] != ' '
}

func (u *Use) check(at string) error {
	if len(u.Prefix) > MaxPrefixBytes {
		return unsupported(at+"/prefix", "has more than %d bytes", MaxPrefixBytes)
	}
	switch u.Kind {
	case KindHeader:
		return u.checkHeader(at)
	case KindHMAC:
		return u.checkHMAC(at)
	}
	return unsupported(at+"/kind", "%s is not one of header, hmac", abi.Quote(u.Kind))
}

func (u *Use) checkHMAC(at string) error {
	switch {
	case u.Header != "" || u.Endpoint != "" || u.Host != "" || u.Port != 0 || u.Path != "":
		return unsupported(at, "an hmac has a kind, a prefix and a label, nothing else")
	case len(u.Prefix) < MinPrefixBytes:
		return unsupported(at+"/prefix", "an hmac needs a prefix of %d bytes or more", MinPrefixBytes).
			WithHint("without one a guest could have any message signed")
	case !u.Label.Valid():
		return unsupported(at+"/label", "is missing: say how a signature is classified")
	}
	return nil
}

func (u *Use) checkHeader(at string) error {
	switch {
	case u.Label.Valid():
		return unsupported(at+"/label", "a header use has no label; using a secret raises nothing")
	case !egress.SecretHeader(u.Header):
		return unsupported(at+"/header", "%s is not a header a secret may be sent in", abi.Quote(u.Header))
	case u.Prefix != "" && !egress.HeaderValue(strings.TrimRight(u.Prefix, " ")):
		return unsupported(at+"/prefix", "is not printable ASCII")
	case (u.Endpoint == "") == (u.Host == ""):
		return unsupported(at, "a header use names either an endpoint or a host and path")
	case u.Endpoint != "" && (u.Port != 0 || u.Path != ""):
		return unsupported(at, "port and path belong to a host; an endpoint has its own")
	case u.Endpoint != "" && !abi.ValidSlug(u.Endpoint):
		return unsupported(at+"/endpoint", "%s is not an endpoint name", abi.Quote(u.Endpoint))
	case u.Host != "":
		if _, err := u.place(); err != nil {
			e := abi.AsError(err)
			return e.At(at + e.Pointer)
		}
	}
	return nil
}

// place compiles host, port and path. Wildcards are refused by asking for loopback, which
// they cannot have: a secret never follows a name that a guest chose.
func (u *Use) place() (*egress.Endpoint, error) {
	return egress.Compile("use", egress.Rule{Scheme: "https", Host: u.Host, Port: u.Port, Methods: egress.Methods(), Path: u.Path},
		abi.Public, abi.Public, true)
}

// admits reports whether the header use covers a request that the endpoints admit.
func (u *Use) admits(endpoints []*egress.Endpoint, method string, target *egress.Target) bool {
	if u.Kind != KindHeader {
		return false
	}
	if u.Host != "" {
		place, err := u.place()
		return err == nil && place.Match(method, target)
	}
	for _, e := range endpoints {
		if e.Name == u.Endpoint && !e.Wildcard() && e.Match(method, target) {
			return true
		}
	}
	return false
}

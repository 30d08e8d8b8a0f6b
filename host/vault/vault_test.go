package vault

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// memory is a store of records, keyed by organisation and name.
type memory map[[2]string]Record

func (m memory) Lookup(_ context.Context, org, name string) (Record, error) {
	if r, ok := m[[2]string{org, name}]; ok {
		return r, nil
	}
	return Record{}, abi.Errorf(abi.CodeNotFound, "no such secret")
}

// flow keeps what was observed and refuses what is above its ceiling.
type flow struct{ label, ceiling abi.Classification }

func (f *flow) Observe(c abi.Classification) *abi.Error {
	if !c.FlowsTo(f.ceiling) {
		return abi.Errorf(abi.CodeClassificationCeiling, "above the ceiling")
	}
	f.label = abi.Join(f.label, c)
	return nil
}

func (f *flow) Emit(sink abi.Classification) *abi.Error {
	if !f.label.FlowsTo(sink) {
		return abi.Errorf(abi.CodeClassificationFlow, "above the sink")
	}
	return nil
}

func (f *flow) Label() abi.Classification { return f.label }

func scope(org, biome string, secrets ...string) boundary.Scope {
	return boundary.Scope{
		Authority: authority.New(authority.Spec{Org: org, Biome: biome, Secrets: secrets}, func() *abi.Error { return nil }),
		Flow:      &flow{label: abi.Public, ceiling: abi.Regulated},
	}
}

func endpoint(t testing.TB, name, scheme, host string, loopback bool) *egress.Endpoint {
	t.Helper()
	e, err := egress.Compile(name, egress.Rule{Scheme: scheme, Host: host, Methods: []string{"GET"}, Path: "/**"}, abi.Internal, abi.Internal, loopback)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func record(k *Keyring, org, name, value string, uses ...Use) Record {
	return Record{Version: 1, Uses: uses, Sealed: k.Seal(org, name, 1, NewValue([]byte(value)))}
}

// PF-F2: not named, not there, another organisation's, moved here, not for this use: one answer.
func TestDeniedIsOneAnswer(t *testing.T) {
	k := testKeys(t, 1)
	toCRM := Use{Kind: KindHeader, Header: "Authorization", Prefix: "Bearer ", Endpoint: "crm"}
	sign := Use{Kind: KindHMAC, Prefix: "webhook:", Label: abi.Internal}
	store := memory{
		{"acme", "crm"}:    record(k, "acme", "crm", sentinel, toCRM),
		{"acme", "path"}:   record(k, "acme", "path", sentinel, Use{Kind: KindHeader, Header: "X-Api-Key", Host: "api.example.com", Path: "/v1/**"}),
		{"acme", "sign"}:   record(k, "acme", "sign", sentinel, sign),
		{"acme", "moved"}:  record(k, "acme", "crm", sentinel, toCRM, sign),
		{"acme", "stolen"}: record(k, "other", "stolen", sentinel, toCRM, sign),
		{"other", "crm"}:   record(k, "other", "crm", sentinel, toCRM, sign),
		{"acme", "wild"}:   record(k, "acme", "wild", sentinel, Use{Kind: KindHeader, Header: "Authorization", Endpoint: "wild"}),
		{"acme", "broken"}: record(k, "acme", "broken", "line\r\nbreak: 0123456789", toCRM),
	}
	v := New(k, store)
	crm, wild, clear := endpoint(t, "crm", "https", "api.example.com", false), endpoint(t, "wild", "https", "*.example.com", false), endpoint(t, "crm", "http", "api.example.com", false)
	all := []string{"crm", "path", "sign", "moved", "stolen", "wild", "broken", "absent"}

	use := func(s boundary.Scope, name, url string, es ...*egress.Endpoint) error {
		u, err := egress.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		c, err := v.Header(context.Background(), s, name, es, "GET", u)
		if err == nil {
			c.Release()
		}
		return err
	}
	mac := func(s boundary.Scope, name string) error {
		_, err := v.HMAC(context.Background(), s, name, []byte("m"))
		return err
	}
	const url = "https://api.example.com/v1/x"
	for what, err := range map[string]error{
		"granted, header": use(scope("acme", "b", all...), "crm", url, crm),
		"granted, path":   use(scope("acme", "b", all...), "path", url, crm),
		"granted, hmac":   mac(scope("acme", "b", all...), "sign"),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	capped := scope("acme", "b", all...)
	capped.Flow = &flow{label: abi.Public, ceiling: abi.Public}
	want := abi.AsError(use(scope("acme", "b", all...), "absent", url, crm))
	for what, err := range map[string]error{
		"nothing granted":        use(scope("acme", "b"), "crm", url, crm),
		"another one granted":    use(scope("acme", "b", "sign"), "crm", url, crm),
		"no authority":           use(boundary.Scope{}, "crm", url, crm),
		"empty name":             use(scope("acme", "b", all...), "", url, crm),
		"name with separators":   use(scope("acme", "b", all...), "acme/crm", url, crm),
		"hmac as header":         use(scope("acme", "b", all...), "sign", url, crm),
		"header as hmac":         mac(scope("acme", "b", all...), "crm"),
		"hmac missing":           mac(scope("acme", "b", all...), "absent"),
		"hmac above the ceiling": mac(capped, "sign"),
		"moved, header":          use(scope("acme", "b", all...), "moved", url, crm),
		"moved, hmac":            mac(scope("acme", "b", all...), "moved"),
		"other organisation's":   use(scope("acme", "b", all...), "stolen", url, crm),
		"from another org":       use(scope("third", "b", all...), "crm", url, crm),
		"no endpoint matched":    use(scope("acme", "b", all...), "crm", url),
		"another host":           use(scope("acme", "b", all...), "crm", "https://b.example.com/v1/x", crm),
		"another path":           use(scope("acme", "b", all...), "path", "https://api.example.com/v2/x", crm),
		"another port":           use(scope("acme", "b", all...), "path", "https://api.example.com:8443/v1/x", crm),
		"a wildcard endpoint":    use(scope("acme", "b", all...), "wild", url, wild),
		"in clear text":          use(scope("acme", "b", all...), "crm", "http://api.example.com/v1/x", clear),
		"path use in clear text": use(scope("acme", "b", all...), "path", "http://api.example.com/v1/x", clear),
		"not header safe":        use(scope("acme", "b", all...), "broken", url, crm),
	} {
		got := abi.AsError(err)
		if err == nil || got.Code != want.Code || got.Message != want.Message || got.Hint != want.Hint || got.Pointer != want.Pointer {
			t.Errorf("%s: %v, want exactly %v", what, err, want)
		}
	}
}

type failing struct{}

func (failing) Lookup(context.Context, string, string) (Record, error) {
	return Record{}, errors.New("disk on fire at /secret/place")
}

// A store that cannot answer is not the same as a missing secret, and names nothing inside.
func TestStoreFailure(t *testing.T) {
	_, err := New(testKeys(t, 1), failing{}).HMAC(context.Background(), scope("acme", "b", "sign"), "sign", nil)
	if e := abi.AsError(err); e.Code != abi.CodeNotReady || strings.Contains(e.Message, "disk") {
		t.Fatal(err)
	}
}

func TestCredential(t *testing.T) {
	k := testKeys(t, 1)
	v := New(k, memory{{"acme", "crm"}: record(k, "acme", "crm", sentinel, Use{Kind: KindHeader, Header: "Authorization", Prefix: "Bearer ", Endpoint: "crm"})})
	u, _ := egress.ParseURL("https://api.example.com/")
	c, err := v.Header(context.Background(), scope("acme", "b", "crm"), "crm", []*egress.Endpoint{endpoint(t, "crm", "https", "api.example.com", false)}, "GET", u)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Authorization": {"guest's own", "twice"}}
	c.Set(h)
	if diff := cmp.Diff(http.Header{"Authorization": {"Bearer " + sentinel}}, h); diff != "" {
		t.Error(diff)
	}
	plain := c.value.Reveal()
	c.Release()
	if strings.Trim(string(plain), "\x00") != "" {
		t.Error("the value was not wiped")
	}
}

// S15: each echo answers one guess; after a few the secret is denied to that biome, and only
// to that biome.
func TestEchoesAreBounded(t *testing.T) {
	k := testKeys(t, 1)
	use := Use{Kind: KindHeader, Header: "Authorization", Endpoint: "crm"}
	store := memory{{"acme", "crm"}: record(k, "acme", "crm", sentinel, use)}
	v := New(k, store)
	es := []*egress.Endpoint{endpoint(t, "crm", "https", "api.example.com", false)}
	u, _ := egress.ParseURL("https://api.example.com/")
	try := func(biome string) error {
		c, err := v.Header(context.Background(), scope("acme", biome, "crm"), "crm", es, "GET", u)
		if err != nil {
			return err
		}
		defer c.Release()
		if found, err := c.Echoed(context.Background(), []byte("nothing"), nil); found || err != nil {
			t.Error("nothing was found to be an echo")
		}
		if found, err := c.Echoed(context.Background(), []byte("head"), []byte("x"+sentinel+"x")); !found || err != nil {
			t.Error("an echo was missed")
		}
		return nil
	}
	answers := 0
	for range 10_000 {
		if try("guesser") == nil {
			answers++
		}
	}
	if answers != MaxEchoes {
		t.Errorf("%d guesses were answered, want %d", answers, MaxEchoes)
	}
	if err := try("neighbour"); err != nil {
		t.Errorf("another biome lost the secret: %v", err)
	}
	rotated := record(k, "acme", "crm", sentinel, use)
	rotated.Version, rotated.Sealed = 2, k.Seal("acme", "crm", 2, NewValue([]byte("another-value-0123456789")))
	store[[2]string{"acme", "crm"}] = rotated
	if c, err := v.Header(context.Background(), scope("acme", "guesser", "crm"), "crm", es, "GET", u); err != nil {
		t.Errorf("a new version is still denied: %v", err)
	} else {
		c.Release()
	}
}

// S15: what is signed always begins with the prefix of the secret.
func TestHMAC(t *testing.T) {
	k := testKeys(t, 1)
	v := New(k, memory{{"acme", "sign"}: record(k, "acme", "sign", sentinel, Use{Kind: KindHMAC, Prefix: "webhook:", Label: abi.Confidential})})
	s := scope("acme", "b", "sign")
	res, err := v.HMAC(context.Background(), s, "sign", []byte("message"))
	if err != nil {
		t.Fatal(err)
	}
	want := hmac.New(sha256.New, []byte(sentinel))
	want.Write([]byte("webhook:message"))
	if !hmac.Equal(res.Body, want.Sum(nil)) || len(res.Body) != 32 || res.Target != "sign" {
		t.Errorf("%+v", res)
	}
	if s.Flow.Label() != abi.Confidential {
		t.Errorf("the signature's label did not join: %s", s.Flow.Label())
	}
}

func TestCheck(t *testing.T) {
	ok := NewValue([]byte(sentinel))
	header := Use{Kind: KindHeader, Header: "Authorization", Prefix: "Bearer ", Endpoint: "crm"}
	place := Use{Kind: KindHeader, Header: "X-Api-Key", Host: "api.example.com", Path: "/v1/**"}
	sign := Use{Kind: KindHMAC, Prefix: "webhook:", Label: abi.Internal}
	with := func(u Use, edit func(*Use)) []Use { edit(&u); return []Use{u} }
	if err := Check([]Use{header, place, sign}, ok); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		at    string
		uses  []Use
		value string
	}{
		{"/uses", nil, sentinel},
		{"/uses", make([]Use, MaxUses+1), sentinel},
		{"/uses", []Use{sign, sign}, sentinel},
		{"/uses/0/kind", []Use{{}}, sentinel},
		{"/uses/0/kind", with(sign, func(u *Use) { u.Kind = "query" }), sentinel},
		{"/uses/1/kind", []Use{header, {Kind: "HEADER"}}, sentinel},
		{"/uses/0/header", with(header, func(u *Use) { u.Header = "" }), sentinel},
		{"/uses/0/header", with(header, func(u *Use) { u.Header = "Host" }), sentinel},
		{"/uses/0/header", with(header, func(u *Use) { u.Header = "Content-Length" }), sentinel},
		{"/uses/0/header", with(header, func(u *Use) { u.Header = "A\r\nB" }), sentinel},
		{"/uses/0/prefix", with(header, func(u *Use) { u.Prefix = "Bearer\n" }), sentinel},
		{"/uses/0/prefix", with(header, func(u *Use) { u.Prefix = strings.Repeat("a", 257) }), sentinel},
		{"/uses/0", with(header, func(u *Use) { u.Endpoint = "" }), sentinel},
		{"/uses/0", with(header, func(u *Use) { u.Host = "api.example.com" }), sentinel},
		{"/uses/0", with(header, func(u *Use) { u.Path = "/" }), sentinel},
		{"/uses/0/endpoint", with(header, func(u *Use) { u.Endpoint = "*" }), sentinel},
		{"/uses/0/label", with(header, func(u *Use) { u.Label = abi.Public }), sentinel},
		{"/uses/0/host", with(place, func(u *Use) { u.Host = "*.example.com" }), sentinel},
		{"/uses/0/host", with(place, func(u *Use) { u.Host = "10.0.0.1" }), sentinel},
		{"/uses/0/path", with(place, func(u *Use) { u.Path = "" }), sentinel},
		{"/uses/0/port", with(place, func(u *Use) { u.Port = 70000 }), sentinel},
		{"/uses/0/prefix", with(sign, func(u *Use) { u.Prefix = "" }), sentinel},
		{"/uses/0/prefix", with(sign, func(u *Use) { u.Prefix = "1234567" }), sentinel},
		{"/uses/0/label", with(sign, func(u *Use) { u.Label = 0 }), sentinel},
		{"/uses/0", with(sign, func(u *Use) { u.Header = "X" }), sentinel},
		{"/value", []Use{header}, ""},
		{"/value", []Use{header}, "fifteen-bytes-x"},
		{"/value", []Use{header}, strings.Repeat("a", MaxValueBytes+1)},
		{"/value", []Use{header}, "0123456789abcdef\r\nX: y"},
		{"/value", []Use{header}, " 0123456789abcdef"},
		{"/value", []Use{header}, "0123456789abcdef\x00"},
		{"/value", []Use{header, sign}, "0123456789abcdéf"},
	} {
		err := Check(tt.uses, NewValue([]byte(tt.value)))
		e := abi.AsError(err)
		if err == nil || e.Pointer != tt.at {
			t.Errorf("%d: %v, want a refusal at %s", i, err, tt.at)
		} else if tt.value != "" && strings.Contains(fmt.Sprint(err), tt.value) {
			t.Errorf("%d: the refusal repeats the value", i)
		}
	}
	if err := Check([]Use{sign}, NewValue([]byte("binary\x00\xff\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"))); err != nil {
		t.Errorf("a signing key may be binary: %v", err)
	}
}

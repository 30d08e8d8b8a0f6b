package main

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/biomes/internal/biometest"
	"github.com/ecotone-dev/ecotone/guest"
)

const capFetch = "web:page.fetch@1"

func start(t *testing.T) *biometest.Biome {
	return biometest.New(t, map[string]func() int32{"fetch": fetch})
}

func TestFetch(t *testing.T) {
	b := start(t)
	b.Host.Secrets["token"] = []byte("never seen here")
	var seen guest.Request
	b.Host.HTTP = func(r guest.Request) (guest.Response, error) {
		seen = r
		return guest.Response{Status: 201, Headers: guest.Headers{"Content-Type": "text/plain"}, Body: []byte("made")}, nil
	}
	got := biometest.Into[out](b, capFetch, `{"url":"https://origin.example/items","method":"POST","headers":{"accept":"*/*"},"body":"{}","secret":"token"}`)
	want := out{Status: 201, Headers: map[string]string{"content-type": "text/plain"}, Body: "made", Encoding: "text", Size: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	asked := guest.Request{Method: "POST", URL: "https://origin.example/items", Headers: map[string]string{"accept": "*/*"}, Secret: "token", Body: []byte("{}")}
	if diff := cmp.Diff(asked, seen); diff != "" {
		t.Error(diff)
	}
	biometest.Into[out](b, capFetch, `{"url":"https://origin.example/"}`)
	if seen.Method != "GET" || seen.Secret != "" {
		t.Errorf("sent %+v", seen)
	}
}

func TestBodyIsBounded(t *testing.T) {
	b := start(t)
	var body []byte
	b.Host.HTTP = func(guest.Request) (guest.Response, error) { return guest.Response{Status: 200, Body: body}, nil }

	body = []byte(strings.Repeat("€", 100_000))
	got := biometest.Into[out](b, capFetch, in2{"https://o.example/", 1000})
	if !got.Truncated || got.Size != len(body) || len(got.Body) != 999 || !utf8.ValidString(got.Body) {
		t.Errorf("%d bytes, truncated %v", len(got.Body), got.Truncated)
	}
	body = []byte("exactly")
	if got := biometest.Into[out](b, capFetch, in2{"https://o.example/", 7}); got.Truncated || got.Body != "exactly" {
		t.Errorf("%+v", got)
	}
	body = []byte{0xff, 0xfe, 1, 2, 3}
	got = biometest.Into[out](b, capFetch, in2{"https://o.example/", 3})
	if got.Encoding != "base64" || got.Body != base64.StdEncoding.EncodeToString(body[:3]) || !got.Truncated {
		t.Errorf("%+v", got)
	}
	// The worst body there is still fits the default output limit.
	body = []byte(strings.Repeat("\x01", 1<<20))
	if got := biometest.Into[out](b, capFetch, in2{"https://o.example/", maxBody}); len(got.Body) != maxBody {
		t.Errorf("%d bytes", len(got.Body))
	}
	if o := b.Unchecked(capFetch, `{"url":"https://o.example/","maxBytes":160001}`); o.Code() != "ARGUMENT_INVALID" {
		t.Errorf("over the bound: %v", o.Failure)
	}
}

type in2 struct {
	URL      string `json:"url"`
	MaxBytes int    `json:"maxBytes"`
}

func TestRefusals(t *testing.T) {
	b := start(t)
	b.Refused(capFetch, `{"url":"https://origin.example/"}`, "DENIED") // no endpoint rule
	b.Host.HTTP = func(guest.Request) (guest.Response, error) { return guest.Response{}, errors.New("broken") }
	b.Refused(capFetch, `{"url":"https://origin.example/"}`, "UPSTREAM_FAILED")
	b.Refused(capFetch, `{"url":"https://origin.example/","secret":"other"}`, "SECRET_DENIED")
	b.Refused(capFetch, `{"url":"origin.example"}`, "REQUEST_INVALID")
	b.Refused(capFetch, `{"url":"file:///etc/passwd"}`, "REQUEST_INVALID")
	for errno, f := range names {
		b.Host.Deny["http_fetch"] = errno
		b.Refused(capFetch, `{"url":"https://origin.example/"}`, f.Code)
	}
	b.Host.Deny["http_fetch"] = guest.EUNAVAIL
	b.Refused(capFetch, `{"url":"https://origin.example/"}`, "EUNAVAIL")
}

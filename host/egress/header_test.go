package egress

import "testing"

func TestHeaders(t *testing.T) {
	for name, want := range map[string][2]bool{ // guest, secret
		"Accept": {true, true}, "Content-Type": {true, true}, "X-Api-Key": {true, true}, "traceparent": {true, true},
		"Authorization": {false, true}, "authorization": {false, true}, "Cookie": {false, true},
		"Host": {}, "HOST": {}, "Connection": {}, "Content-Length": {}, "Content_Length": {}, "Transfer-Encoding": {}, "TE": {}, "Upgrade": {}, "Expect": {},
		"Proxy-Authorization": {}, "Proxy-X": {}, "proxy_x": {}, "Ecotone-Hairpin": {}, "ecotone_hairpin": {}, "X-Forwarded-For": {}, "X_Forwarded_For": {}, "Forwarded": {},
		"X-HTTP-Method-Override": {}, "X-Original-URL": {}, "User-Agent": {}, "Accept-Encoding": {}, "Sec-Fetch-Site": {},
		"": {}, "a b": {}, "a:b": {}, "a\r\nb": {}, "é": {}, "a\x00": {},
	} {
		if got := [2]bool{GuestHeader(name), SecretHeader(name)}; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	for value, want := range map[string]bool{"": true, "a b": true, "a\tb": true, " a": false, "a ": false, "a\r\nb": false, "a\nb": false, "a\x00": false, "é": false, "a\x7f": false} {
		if got := HeaderValue(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

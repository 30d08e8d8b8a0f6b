package guard

import "net/http"

// FromHTTP reads the facts of a net/http request; nonceHeader names the hairpin header.
func FromHTTP(r *http.Request, nonceHeader string) Facts {
	f := Facts{
		Host: r.Host, Origin: r.Header.Values("Origin"), FetchSite: r.Header.Get("Sec-Fetch-Site"),
		Nonce: r.Header.Values(nonceHeader),
	}
	for name := range r.Header {
		f.Forwarded = f.Forwarded || Forwards(name)
	}
	return f
}

package network

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

func TestRefusedHeaders(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	c, n := local(t, "origin.test")
	many := map[string]string{}
	for i := range MaxRequestHeaders + 1 {
		many[fmt.Sprintf("X-%d", i)] = "v"
	}
	for _, h := range []map[string]string{
		{"Host": "evil.test"},
		{"host": "evil.test"},
		{"Connection": "close"},
		{"Transfer-Encoding": "chunked"},
		{"Content-Length": "0"},
		{"content_length": "0"},
		{"Proxy-Authorization": "x"},
		{"Ecotone-Hairpin": "x"},
		{"Cookie": "a=b"},
		{"Authorization": "Bearer x"},
		{"X-HTTP-Method-Override": "DELETE"},
		{"User-Agent": "x"},
		{"Accept-Encoding": "gzip"},
		{"Expect": "100-continue"},
		{"Upgrade": "h2c"},
		{"Te": "trailers"},
		{"": "v"},
		{"A B": "v"},
		{"A:": "v"},
		{"A\r\nHost": "v"},
		{"A": "v\r\nHost: evil.test"},
		{"A": "v\nB: c"},
		{"A": "v\x00"},
		{"A": " v"},
		{"A": "é"},
		{"X-A": "1", "x-a": "2"},
		{"X-A": "1", "X_A": "2"},
		many,
		{"A": strings.Repeat("v", MaxRequestHeaderBytes)},
	} {
		_, err := c.Fetch(t.Context(), scope(nil, o.endpoint(t)), boundary.FetchRequest{Method: "GET", URL: o.url("/"), Headers: h}, nil)
		if abi.CodeOf(err) != abi.CodeHeaderRefused {
			t.Errorf("%.60v: %v", h, err)
		}
	}
	if n.queries.Load() != 0 || o.hits.Load() != 0 {
		t.Error("something left")
	}
	if _, err := c.Fetch(t.Context(), scope(nil, o.endpoint(t)), boundary.FetchRequest{Method: "GET", URL: o.url("/"), Headers: map[string]string{"Range": "bytes=0-1"}}, nil); err != nil {
		t.Errorf("a range without a secret: %v", err)
	}
}

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// Every answer a server can give ends in the documented exit code, whatever the server is.
func TestExitCodes(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	doc := func(change func(*problem.Document), code abi.Code) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			d := problem.From(abi.Errorf(code, "no"), "01ARZ3NDEKTSV4RRFFQ69G5FAV")
			change(&d)
			w.Header().Set("Content-Type", problem.ContentType)
			w.WriteHeader(d.Status)
			_, _ = w.Write(d.Encode())
		}
	}
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	asIs := func(*problem.Document) {}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   int
		stderr string
	}{
		"output":            {text(200, `{"a":1}`), exitDone, "invocation "},
		"approval":          {doc(func(d *problem.Document) { d.Decision = "needs_approval" }, abi.CodeMissingGrant), exitApproval, "audit: 01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		"denied":            {doc(asIs, abi.CodeMissingGrant), exitDenied, "MISSING_GRANT: no"},
		"unauthenticated":   {doc(asIs, abi.CodeUnauthenticated), exitDenied, "UNAUTHENTICATED: no"},
		"not found":         {doc(asIs, abi.CodeNotFound), exitFailed, "NOT_FOUND: no"},
		"audit unavailable": {doc(asIs, abi.CodeAuditUnavailable), exitFailed, "AUDIT_UNAVAILABLE: no"},
		"no document":       {text(502, "<html>bad gateway</html>"), exitFailed, "502 Bad Gateway with no problem document"},
		"another document":  {text(403, `{"error":"nope"}`), exitFailed, "with no problem document"},
		"redirect":          {http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, exitFailed, "with no problem document"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			var stdout, stderr strings.Builder
			code := Run(t.Context(), []string{"--invoke", server.URL, "--token", "eco_s_hidden", "invoke", "t:it.do@1"}, strings.NewReader(""), &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit code %d, want %d; %s", code, c.code, stderr.String())
			}
			if strings.Contains(stdout.String()+stderr.String(), "eco_s_hidden") {
				t.Errorf("the token is shown: %s%s", &stdout, &stderr)
			}
		})
	}
}

package servertest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/trace"
)

// collected is a collector: what it was sent, and as whom.
type collected struct {
	*httptest.Server
	mu     sync.Mutex
	raw    bytes.Buffer // every byte of every request, unpacked
	spans  []*otlp.Span
	tokens []string
}

func newCollector(t *testing.T) *collected {
	c := &collected{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			in = z
		}
		raw, err := io.ReadAll(in)
		var sent collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(raw, &sent) != nil {
			t.Errorf("what came is no export: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(raw)
		_ = r.Header.Write(&c.raw)
		c.tokens = append(c.tokens, r.Header.Get("Authorization"))
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// attributes of a span, as text.
func attributes(s *otlp.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// of finds the span of an invocation.
func (c *collected) of(t *testing.T, id string) *otlp.Span {
	t.Helper()
	for _, s := range c.spans {
		if attributes(s)["ecotone.invocation"] == id {
			return s
		}
	}
	t.Fatalf("no span of %s among %d", id, len(c.spans))
	return nil
}

func (c *collected) below(s *otlp.Span) (names []string) {
	for _, b := range c.spans {
		if bytes.Equal(b.ParentSpanId, s.SpanId) && bytes.Equal(b.TraceId, s.TraceId) {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return names
}

// The values that must be nowhere but where they belong.
const (
	inArguments = "SENTINEL-argument-00000001"
	inBody      = "SENTINEL-body-000000000002"
	inHeader    = "SENTINEL-header-0000000003"
	inSecret    = "SENTINEL-secret-0000000004"
	inKey       = "SENTINEL-key-0000000000005"
	inPath      = "SENTINEL-path-000000000006"
	inAnswer    = "SENTINEL-answer-0000000007"
	inName      = "sentinel-name-000000000008"
	inToken     = "SENTINEL-token-00000000009"
)

var sentinels = []string{inArguments, inBody, inHeader, inSecret, inKey, inPath, inAnswer, inName, inToken}

// PF-F7: one span for each invocation and each host call, in the caller's trace and its children in the same, and no value: what a
// caller, a guest, an origin and an operator said is in none of the bytes that a collector gets, nor in the log.
func TestTracesHaveNoValues(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Said", inHeader)
		_, _ = io.WriteString(w, `"`+inAnswer+`"`)
	}))
	t.Cleanup(origin.Close)
	g := servertest.Start(t, func(o *server.Options) {
		o.EgressLoopback = true
		o.Trace = trace.Options{Endpoint: c.URL + "/v1/traces", Token: inToken, Percent: 100}
	})
	endpoint(g, "origin", origin.URL, nil)
	putSecret(g, "token", inSecret)
	admit(g, "callee", script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "a", `"`+inBody+`"`)}}), []string{"project"}, nil)
	admit(g, "caller", script("caller", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "token", Why: "test"}}
		m.Requires.Capabilities = []abi.CapabilityRef{"callee:a.do@1"}
	}, action{ref: "caller:a.do@1", reach: abi.ReachIntegration, steps: []step{
		do("kv_put", inKey, `"`+inBody+`"`),
		do("http_fetch", `{"method":"POST","url":"`+origin.URL+`/`+inPath+`","headers":{"X-Say":"`+inHeader+`"},"secret":"token"}`, inBody),
		do("log", 1, inBody),
		do("capability_invoke", "callee:a.do@1", `{"a":"`+inBody+`"}`),
	}}), []string{"project"}, map[string]any{"endpoints": []string{"origin"}, "secrets": []string{"token"}, "calls": []string{"callee:a.do@1"}})
	s := g.Open("user:alice", "project", nil)
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	input := map[string]string{"a": inArguments}
	with := s.Invoke("caller:a.do@1", input, "traceparent", "00-"+traceID+"-"+spanID+"-01")
	if errno(with) != 0 {
		t.Fatalf("%d %s", with.Status, with.Body)
	}
	without := s.Invoke("caller:a.do@1", input)
	denied := s.Invoke("test:"+inName+".do@1", input).Refused(abi.CodeMissingGrant)
	unwanted := s.Invoke("caller:a.do@1", input, "traceparent", "00-"+traceID+"-"+spanID+"-00")
	child := g.Control("GET", "/v1/audit?parent="+with.Header.Get("Ecotone-Invocation"), nil).Want(200)
	g.Stop() // sends what waits

	c.mu.Lock()
	defer c.mu.Unlock()
	top := c.of(t, with.Header.Get("Ecotone-Invocation"))
	if hex.EncodeToString(top.TraceId) != traceID || hex.EncodeToString(top.ParentSpanId) != spanID || top.Kind != otlp.Span_SPAN_KIND_SERVER {
		t.Errorf("it is in the trace %x below %x", top.TraceId, top.ParentSpanId)
	}
	if got := c.below(top); !slices.Equal(got, []string{"callee:a.do@1", "capability_invoke", "http_fetch", "kv_put"}) {
		t.Errorf("below it are %q", got)
	}
	var page struct {
		Items []struct {
			ID string `json:"auditId"`
		}
	}
	child.JSON(&page)
	if len(page.Items) != 1 || page.Items[0].ID == "" {
		t.Fatalf("%s", child.Body)
	}
	if below := c.of(t, page.Items[0].ID); !bytes.Equal(below.ParentSpanId, top.SpanId) || !slices.Equal(c.below(below), []string{"kv_put"}) {
		t.Errorf("the child is below %x of %x and has %q", below.ParentSpanId, top.SpanId, c.below(below))
	}
	for _, span := range c.spans {
		if span.EndTimeUnixNano < span.StartTimeUnixNano || time.Since(time.Unix(0, int64(span.EndTimeUnixNano))) > time.Hour {
			t.Errorf("%s is from %d to %d", span.Name, span.StartTimeUnixNano, span.EndTimeUnixNano)
		}
		for key := range attributes(span) {
			if !slices.Contains(trace.Keys(), key) {
				t.Errorf("a span has the attribute %s", key)
			}
		}
	}
	if own := c.of(t, without.Header.Get("Ecotone-Invocation")); len(own.ParentSpanId) != 0 || bytes.Equal(own.TraceId, top.TraceId) {
		t.Errorf("without a traceparent it is in %x below %x", own.TraceId, own.ParentSpanId)
	}
	if got := c.of(t, denied.Header.Get("Ecotone-Invocation")); got.Name != "invoke" || attributes(got)["ecotone.code"] != string(abi.CodeMissingGrant) || got.Status.Code != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("what was denied is %s %v", got.Name, attributes(got))
	}
	for _, span := range c.spans {
		if attributes(span)["ecotone.invocation"] == unwanted.Header.Get("Ecotone-Invocation") {
			t.Error("a trace that its caller does not record is sent")
		}
	}
	if !slices.Contains(c.tokens, "Bearer "+inToken) {
		t.Errorf("the collector was shown %q", c.tokens)
	}
	raw := bytes.ReplaceAll(c.raw.Bytes(), []byte("Bearer "+inToken), nil) // where it belongs
	mustNotHave(t, "what the collector got", raw, sentinels...)
	mustNotHave(t, "the log", g.Log.Bytes(), append([]string{s.Token, g.Operator}, sentinels...)...)
	if len(c.spans) < 10 || g.Log.Len() == 0 {
		t.Errorf("%d spans", len(c.spans))
	}
}

// A collector that is not there costs the spans and nothing else, and stopping waits a few seconds at most; one
// that is reached in the open is refused.
func TestCollectorIsGone(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.Close()
	g := servertest.Start(t, func(o *server.Options) { o.Trace = trace.Options{Endpoint: c.URL + "/v1/traces", Percent: 100} })
	s := echoSession(g)
	for i := range 5 {
		s.Invoke("test:echo.do@1", map[string]int{"i": i}).Want(200)
	}
	g.Stop()
	servertest.DoesNotOpen(t, abi.CodeTLSRequired, func(o *server.Options) { o.Trace = trace.Options{Endpoint: "http://192.0.2.1:4318/v1/traces"} })
	servertest.DoesNotOpen(t, abi.CodeInvalidRequest, func(o *server.Options) { o.Trace = trace.Options{Endpoint: "https://user:pass@collector.test/"} })
}

// Of the traces that nobody decided about, as many are sent as was said, each whole.
func TestPercentOfTraces(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	g := servertest.Start(t, func(o *server.Options) { o.Trace = trace.Options{Endpoint: c.URL + "/v1/traces", Percent: 0} })
	s := echoSession(g)
	s.Invoke("test:echo.do@1", map[string]int{}).Want(200)
	wanted := s.Invoke("test:echo.do@1", map[string]int{}, "traceparent", "00-"+strings.Repeat("ab", 16)+"-"+strings.Repeat("cd", 8)+"-01").Want(200)
	for _, malformed := range []string{"00-" + strings.Repeat("0", 32) + "-" + strings.Repeat("cd", 8) + "-01", "00-" + strings.Repeat("ab", 16) + "-" + strings.Repeat("0", 16) + "-01", "ff", strings.Repeat("a", 200)} {
		s.Invoke("test:echo.do@1", map[string]int{}, "traceparent", malformed).Want(200)
	}
	g.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(t, wanted.Header.Get("Ecotone-Invocation"))
	if len(c.spans) != 1 { // the guest's one call touches nothing outside it, and is on no receipt
		t.Errorf("%d spans", len(c.spans))
	}
}

// Package trace sends spans to an OpenTelemetry collector, by OTLP over HTTP: one for each invocation and one
// for each host call that is on its receipt.
//
// It promises that no value is in a span: no argument, body, header, path, key, URL, size, label or secret,
// because it is never given one (package span); that what a span says of an outcome is what the caller, or the guest, was told (S6); and that a
// collector that is slow or gone costs no invocation anything but its spans. All of OpenTelemetry is in this
// package. It refuses to know what is being run.
package trace

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/logs"
	"github.com/ecotone-dev/ecotone/gateway/span"
	"github.com/ecotone-dev/ecotone/gateway/version"
)

// Options say where spans go.
type Options struct {
	Endpoint string      // URL of the collector, as https://collector:4318/v1/traces; plain HTTP on loopback only
	Token    logs.Secret // bearer token for the collector; "" is none
	Percent  int         // of traces that no caller decided about, 0 to 100
	Log      *slog.Logger
}

// names of attributes, in this one place.
const (
	keyInvocation  = attribute.Key("ecotone.invocation")
	keyFace        = attribute.Key("ecotone.face")
	keyCapability  = attribute.Key("ecotone.capability")
	keyEnvironment = attribute.Key("ecotone.environment")
	keyCode        = attribute.Key("ecotone.code")
	keyFunction    = attribute.Key("ecotone.function")
	keyOutcome     = attribute.Key("ecotone.outcome")
)

// Keys are all attributes that spans have.
func Keys() []string {
	return []string{
		string(keyInvocation), string(keyFace), string(keyCapability), string(keyEnvironment), string(keyCode), string(keyFunction), string(keyOutcome),
	}
}

// exportTimeout bounds one attempt to send, and closing.
const exportTimeout = 5 * time.Second

// queue is how many spans wait to be sent; more are dropped.
const queue = 4096

// Tracer sends. Safe for concurrent use. Close it once.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   api.Tracer
	percent  uint64
}

// Open makes a tracer. It does not connect: a collector that is not there yet is no error.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the trace endpoint is not like https://collector.example.com:4318/v1/traces")
	}
	if address, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !address.IsLoopback()) {
		return nil, abi.Errorf(abi.CodeTLSRequired, "spans are sent over TLS, or to loopback").WithHint("give an https:// address, or run a collector on this machine")
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("spans were not sent", "error", err) }))
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithTimeout(exportTimeout), otlptracehttp.WithCompression(otlptracehttp.GzipCompression)}
	if o.Token != "" {
		options = append(options, otlptracehttp.WithHeaders(map[string]string{"Authorization": "Bearer " + o.Token.Reveal()}))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "traces cannot be exported: %w", err)
	}
	t := &Tracer{percent: uint64(o.Percent)}
	t.provider = sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(queue), sdk.WithExportTimeout(exportTimeout)),
		sdk.WithSampler(sdk.AlwaysSample()), // what is not to be sent never gets here
		sdk.WithIDGenerator(named{}),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "ecotone"), attribute.String("service.version", version.Version))),
	)
	t.tracer = t.provider.Tracer("github.com/ecotone-dev/ecotone/gateway/trace")
	return t, nil
}

// Close sends what waits, for a few seconds at most.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Ended sends an invocation that has ended just now. Whether a trace is sent that no caller
// decided about follows from its id: all of it, or nothing.
func (t *Tracer) Ended(i *span.Invocation) {
	ids := idsOf(i)
	if i.Span == "" && binary.BigEndian.Uint64(ids.trace[8:])%100 >= t.percent {
		return
	}
	end := time.Now()
	begin := end.Add(-i.Took)
	ctx := context.WithValue(context.Background(), idsKey{}, ids.span)
	ctx = api.ContextWithSpanContext(ctx, api.NewSpanContext(api.SpanContextConfig{
		TraceID: ids.trace, SpanID: ids.above, TraceFlags: api.FlagsSampled, Remote: true,
	}))
	kind := api.SpanKindServer
	if i.Parent != "" {
		kind = api.SpanKindInternal
	}
	name := i.Capability
	if name == "" {
		name = "invoke"
	}
	ctx, open := t.tracer.Start(ctx, name, api.WithTimestamp(begin), api.WithSpanKind(kind), api.WithAttributes(
		keyInvocation.String(i.ID), keyFace.String(i.Face), keyCapability.String(i.Capability), keyEnvironment.String(i.Environment),
	))
	for n := range i.Calls {
		t.call(ctx, begin, &i.Calls[n])
	}
	if i.Code != "" {
		open.SetAttributes(keyCode.String(string(i.Code)))
		open.SetStatus(codes.Error, string(i.Code))
	}
	open.End(api.WithTimestamp(end))
}

func (t *Tracer) call(ctx context.Context, begin time.Time, c *span.Call) {
	outcome := "done"
	if c.Refused {
		outcome = "refused"
	}
	_, open := t.tracer.Start(context.WithValue(ctx, idsKey{}, api.SpanID{}), c.Function, api.WithTimestamp(begin.Add(c.Start)),
		api.WithSpanKind(api.SpanKindInternal), api.WithAttributes(keyFunction.String(c.Function), keyOutcome.String(outcome)))
	open.End(api.WithTimestamp(begin.Add(c.Start + c.Took)))
}

// ids are what an invocation is called in its trace.
type ids struct {
	trace       api.TraceID
	span, above api.SpanID
}

// idsOf makes them from the ids that the audit has: whoever has a row finds its span, and a child's
// span finds its parent's without anything being handed on.
func idsOf(i *span.Invocation) ids {
	var out ids
	root, err := ulid.ParseStrict(i.Root)
	if err == nil {
		out.trace = api.TraceID(root)
	}
	if raw, err := hex.DecodeString(i.Trace); err == nil && len(raw) == len(out.trace) {
		out.trace = api.TraceID(raw)
	}
	out.span, out.above = spanOf(i.ID), spanOf(i.Parent)
	if raw, err := hex.DecodeString(i.Span); i.Parent == "" && err == nil && len(raw) == len(out.above) {
		out.above = api.SpanID(raw)
	}
	return out
}

// spanOf is the span of an invocation: the end of its id, which is chance. Without an invocation there is none.
func spanOf(id string) (s api.SpanID) {
	u, err := ulid.ParseStrict(id)
	if err == nil {
		copy(s[:], u[8:])
	}
	return s
}

// Package metrics counts what the gateway does, for Prometheus.
//
// It promises that there are as many series at the start as there ever will be: every label has a closed set of
// values, from the tables of codes and of host functions, and nothing that a caller, a guest or an organisation
// names is one. What it counts of an invocation is what its caller was told, never the true reason
// that the audit alone may know, so that reading the metrics tells nobody what a low caller could not find out
// (S5, S6). Counting blocks nobody and allocates nothing. The package refuses to know what a decision is.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/version"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Metrics are the process's. Safe for concurrent use.
type Metrics struct {
	registry  *prometheus.Registry
	answers   map[abi.Code]prometheus.Counter // "": done
	duration  prometheus.Histogram
	functions map[string]*function
	ordered   []*function // by row of the table
	runs      prometheus.Histogram
	fuel      prometheus.Counter
	logBytes  prometheus.Counter
}

// function is what is counted of one host function.
type function struct {
	done, refused prometheus.Counter
	took          prometheus.Histogram // nil: it touches nothing outside the invocation, and is not timed
}

// seconds are the bounds of durations: from a small guest that does nothing to what no environment allows.
var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// done is the label of what was not refused.
const done = "OK"

// New makes all series.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), answers: map[abi.Code]prometheus.Counter{}, functions: map[string]*function{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ecotone_build_info", Help: "The build."}, []string{"version", "commit"})
	build.WithLabelValues(version.Version, version.Commit).Set(1)

	answers := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ecotone_answers_total", Help: "Answers to requests to invoke, by the code the caller was given; OK is none.",
	}, []string{"code"})
	m.answers[""] = answers.WithLabelValues(done)
	for _, row := range abi.Codes() {
		m.answers[row.Code] = answers.WithLabelValues(string(row.Code))
	}
	m.duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ecotone_answer_duration_seconds", Help: "From a request to invoke to its answer, waiting for a place included.", Buckets: seconds,
	})
	m.runs = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ecotone_run_duration_seconds", Help: "From entering the boundary to the end of the guest, children included each for itself.", Buckets: seconds,
	})
	m.fuel = prometheus.NewCounter(prometheus.CounterOpts{Name: "ecotone_fuel_total", Help: "Fuel that guests used."})
	m.logBytes = prometheus.NewCounter(prometheus.CounterOpts{Name: "ecotone_guest_log_bytes_total", Help: "What guests logged, in bytes."})

	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ecotone_host_calls_total", Help: "Host calls of guests, and whether they were refused to them.",
	}, []string{"function", "outcome"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ecotone_host_call_duration_seconds", Help: "How long host calls took that touch something outside the invocation.", Buckets: seconds,
	}, []string{"function"})
	for _, row := range abi.Functions() {
		f := &function{done: calls.WithLabelValues(row.Name, "done"), refused: calls.WithLabelValues(row.Name, "refused")}
		if row.Receipt != "" {
			f.took = took.WithLabelValues(row.Name).(prometheus.Histogram)
		}
		m.functions[row.Name], m.ordered = f, append(m.ordered, f)
	}
	m.registry.MustRegister(build, answers, m.duration, m.runs, m.fuel, m.logBytes, calls, took)
	return m
}

// Answered counts an answer to a request to invoke. code is what the caller was given; "" is an output.
func (m *Metrics) Answered(code abi.Code, took time.Duration) {
	if c := m.answers[code]; c != nil {
		c.Inc()
	}
	m.duration.Observe(took.Seconds())
}

// Ran counts what a guest did. Of what was withheld from whoever asked for it, only that it ran.
func (m *Metrics) Ran(r *boundary.Receipt, told bool) {
	m.runs.Observe(r.Took.Seconds())
	if !told {
		return
	}
	m.fuel.Add(float64(r.Fuel))
	for i := range r.Logs {
		m.logBytes.Add(float64(len(r.Logs[i].Text)))
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		f := m.functions[l.Function]
		switch {
		case f == nil:
			continue
		case l.Code == "":
			f.done.Inc()
		default:
			f.refused.Inc()
		}
		if f.took != nil {
			f.took.Observe(l.Took.Seconds())
		}
	}
	if r.Unlisted.IsZero() {
		return
	}
	for i, f := range m.ordered {
		if n := r.Unlisted[i]; n != 0 {
			f.done.Add(float64(n))
		}
	}
}

// Gauge adds a number that is asked for when the metrics are read. name ends with its unit, if it has one.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Counter is Gauge for a number that only grows; name ends with _total.
func (m *Metrics) Counter(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Names are the metrics there are, for what is written about them.
func (m *Metrics) Names() ([]string, error) {
	families, err := m.registry.Gather()
	var out []string
	for _, f := range families {
		out = append(out, f.GetName())
	}
	return out, err
}

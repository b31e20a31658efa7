// Package web shows the agent to machines: its metrics for Prometheus, its health
// for the kubelet and its status as JSON, over HTTP. Nothing it serves changes
// anything.
package web

import (
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/pkg/status"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// The label values that are known beforehand. Their series begin at 0, without
// which the first failure of a kind would not be an increase. Others may come.
var (
	ops         = []string{"Describe", "CreateInterface", "AssignAddresses", "UnassignAddresses", "DeleteInterface"}
	actions     = []string{"restore", "assign", "create", "release", "delete"}
	results     = []string{ok, failed}
	repairs     = []string{"cache", "kernel", "lost", "orphan", "leak"}
	comparisons = []string{"resync", "change", "cache"}
	kinds       = []string{"tick", "memory", "status"}
	waits       = []string{"served", "exhausted", "failed"}
)

// ok is the outcome of what did not fail.
const ok = "ok"

// failed is the outcome of a step that could not be begun.
const failed = "failed"

// Buckets in seconds: a cloud answers within a tenth of a second to half a minute,
// an idle tick takes less than a millisecond; an ADD waits for 100 seconds at most.
var (
	callBuckets = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
	waitBuckets = []float64{0.1, 0.5, 1, 5, 15, 60}
	tickBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10}
)

// Metrics are the agent's numbers, on a registry of their own, and the status that
// they and the pages are made from. Its methods may be called from several
// goroutines.
type Metrics struct {
	registry *prometheus.Registry
	release  string
	begun    time.Time
	seen     atomic.Pointer[observed]
	history  history

	calls     *prometheus.CounterVec
	callTimes *prometheus.HistogramVec
	steps     *prometheus.CounterVec
	repairs   *prometheus.CounterVec
	compared  *prometheus.CounterVec
	errors    *prometheus.CounterVec
	ticks     prometheus.Histogram
	waits     *prometheus.HistogramVec
}

// New returns the metrics of an agent of that release which starts now. outcomes are the words that Call may
// get besides "ok": their series begin at 0.
func New(release string, outcomes ...string) *Metrics {
	metrics := &Metrics{
		registry: prometheus.NewRegistry(), release: release, begun: time.Now(),
		calls:    newCounter("enipool_cloud_calls_total", "Calls to the cloud that ended, by method and outcome.", "op", "outcome"),
		steps:    newCounter("enipool_steps_total", "Steps of plans that were begun, by action and outcome.", "action", "outcome"),
		repairs:  newCounter("enipool_repairs_total", "What was found wrong on the node or in the cloud and was put right.", "what"),
		compared: newCounter("enipool_kernel_comparisons_total", "Comparisons of the kernel with the node cache: at each resync, because others changed the kernel, because the cache changed.", "cause"),
		errors:   newCounter("enipool_errors_total", "Failures of the agent's own work.", "kind"),
		callTimes: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "enipool_cloud_call_seconds",
			Help: "How long calls to the cloud took.", Buckets: callBuckets}, []string{"op"}),
		ticks: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "enipool_tick_seconds",
			Help: "How long the loop's ticks took.", Buckets: tickBuckets}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "enipool_add_wait_seconds",
			Help: "How long ADDs waited that found no free address, by what came of it.", Buckets: waitBuckets}, []string{"outcome"}),
	}
	built := prometheus.NewGauge(prometheus.GaugeOpts{Name: "enipool_build_info", Help: "1, labelled with the release.",
		ConstLabels: prometheus.Labels{"release": release}})
	built.Set(1)
	metrics.registry.MustRegister(metrics.calls, metrics.callTimes, metrics.steps, metrics.repairs, metrics.compared, metrics.errors, metrics.ticks, metrics.waits, built, gauges{metrics},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics.createSeries(append([]string{ok}, outcomes...))
	return metrics
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// createSeries makes the series whose labels are known. outcomes are those of calls.
func (m *Metrics) createSeries(outcomes []string) {
	for _, op := range ops {
		m.callTimes.WithLabelValues(op)
		for _, outcome := range outcomes {
			m.calls.WithLabelValues(op, outcome)
		}
	}
	for _, action := range actions {
		for _, result := range results {
			m.steps.WithLabelValues(action, result)
		}
	}
	for _, what := range repairs {
		m.repairs.WithLabelValues(what)
	}
	for _, cause := range comparisons {
		m.compared.WithLabelValues(cause)
	}
	for _, kind := range kinds {
		m.errors.WithLabelValues(kind)
	}
	for _, outcome := range waits {
		m.waits.WithLabelValues(outcome)
	}
}

// Call counts a call to the cloud: its method, "ok" or the kind of its failure in
// a few words, and how long it took.
func (m *Metrics) Call(op, outcome string, took time.Duration) {
	m.calls.WithLabelValues(op, outcome).Inc()
	m.callTimes.WithLabelValues(op).Observe(took.Seconds())
}

// Step counts a step of a plan by its action and whether it could be begun, and keeps it for the page.
func (m *Metrics) Step(s status.Step) {
	outcome := ok
	if s.Failed != "" {
		outcome = failed
	}
	m.steps.WithLabelValues(s.Action, outcome).Inc()
	m.history.noteStep(s, time.Now())
}

// Repaired counts n things that were put right. what is a word for them.
func (m *Metrics) Repaired(what string, n int) {
	m.repairs.WithLabelValues(what).Add(float64(max(n, 0)))
}

// Compared counts a comparison of the kernel with the node cache. cause is a word for it.
func (m *Metrics) Compared(cause string) { m.compared.WithLabelValues(cause).Inc() }

// Error counts a failure. kind is a word for it, one of few.
func (m *Metrics) Error(kind string) { m.errors.WithLabelValues(kind).Inc() }

// Waited counts an ADD that found no free address: what came of it, in a word, and how
// long it waited.
func (m *Metrics) Waited(outcome string, took time.Duration) {
	m.waits.WithLabelValues(outcome).Observe(took.Seconds())
}

// Tick counts a tick of the loop.
func (m *Metrics) Tick(took time.Duration) { m.ticks.Observe(took.Seconds()) }

// Observe takes the status that a tick ended with: all gauges and pages are made
// from it until the next one comes. That it comes is the sign that the loop lives.
// What s refers to must not change any more.
func (m *Metrics) Observe(s status.Status) {
	now := time.Now()
	m.seen.Store(&observed{Status: s, at: now, subnets: subnetsOf(m.seen.Load(), s)})
	m.history.noteSizes(s, now)
}

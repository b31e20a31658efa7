// Package web shows the operator to machines and people: metrics for Prometheus, and what it knows of the
// cluster and of single nodes as JSON and text, over HTTP. Nothing it serves changes anything.
package web

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/quota"
)

// Buckets in seconds: with tokens left a call waits for nothing, and the last of 5,000 nodes that come at once on EC2 for
// twenty minutes. A describe of that number of nodes takes ten pages and more.
var (
	waitBuckets     = []float64{0.1, 1, 5, 15, 30, 60, 120, 300, 600, 1800}
	describeBuckets = []float64{0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
)

// repeated is the outcome of a request that was sent again.
const repeated = "repeated"

// Source is an operator that tells what it knows.
type Source interface {
	Report(ctx context.Context) (operator.Report, error)
	Why(ctx context.Context, node string) (operator.Why, error)
	All(ctx context.Context) ([]operator.Why, error)
	Check(ctx context.Context) ([]cloud.Finding, error)
	Healthy() error
}

// Metrics are an operator's numbers, on a registry of their own. It implements operator.Meter.
type Metrics struct {
	registry  *prometheus.Registry
	release   string
	calls     *prometheus.CounterVec
	waits     *prometheus.HistogramVec
	describes prometheus.Histogram
	conflicts prometheus.Counter
	leaks     prometheus.Counter
}

var _ operator.Meter = (*Metrics)(nil)

// New returns the metrics of an operator of that release.
func New(release string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), release: release,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "enipool_operator_calls_total",
			Help: "Requests to the cloud that ended, by the action that the cloud counts them as, and by outcome."}, []string{"action", "outcome"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "enipool_operator_wait_seconds",
			Help: "How long nodes had waited when a call for them began, by class.", Buckets: waitBuckets}, []string{"class"}),
		describes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "enipool_operator_describe_seconds",
			Help: "How long describes of everything took.", Buckets: describeBuckets}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{Name: "enipool_operator_conflicts_total",
			Help: "Writes of objects of which another version was there already."}),
		leaks: prometheus.NewCounter(prometheus.CounterOpts{Name: "enipool_operator_leaks_deleted_total",
			Help: "ENIs that were deleted because nobody had finished them, or an instance had left them behind."}),
	}
	built := prometheus.NewGauge(prometheus.GaugeOpts{Name: "enipool_operator_build_info", Help: "1, labelled with the release.",
		ConstLabels: prometheus.Labels{"release": release}})
	built.Set(1)
	m.registry.MustRegister(m.calls, m.waits, m.describes, m.conflicts, m.leaks, built,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range quota.Classes() {
		m.waits.WithLabelValues(c.String())
	}
	return m
}

// Show adds what an operator knows to the metrics. actions are those of its cloud, whose series begin at 0: without that the first
// failure of a kind would be no increase. Others may come.
func (m *Metrics) Show(o Source, actions ...string) {
	m.registry.MustRegister(gauges{o})
	for _, action := range actions {
		for _, outcome := range append([]string{outcomeOf(nil), repeated}, cloud.Outcomes()...) {
			m.calls.WithLabelValues(action, outcome)
		}
	}
}

// Called counts a request to the cloud. It is for engine.Options.Ended.
func (m *Metrics) Called(action string, err error) {
	m.calls.WithLabelValues(action, outcomeOf(err)).Inc()
}

func outcomeOf(err error) string {
	if err == engine.ErrRepeated {
		return repeated
	}
	return string(cloud.OutcomeOf(err))
}

// Waited implements operator.Meter.
func (m *Metrics) Waited(of quota.Class, took time.Duration) {
	m.waits.WithLabelValues(of.String()).Observe(took.Seconds())
}

// Described implements operator.Meter.
func (m *Metrics) Described(took time.Duration) { m.describes.Observe(took.Seconds()) }

// Conflicted implements operator.Meter.
func (m *Metrics) Conflicted() { m.conflicts.Inc() }

// LeaksDeleted implements operator.Meter.
func (m *Metrics) LeaksDeleted(n int) { m.leaks.Add(float64(n)) }

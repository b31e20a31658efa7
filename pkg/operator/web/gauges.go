package web

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// patience is how long the loop may take to answer: it may be busy with thousands of nodes.
const patience = 5 * time.Second

// gauges are the metrics that an operator which leads tells when it is asked: one state as a whole.
type gauges struct{ of Source }

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("enipool_operator_"+name, help, labels, nil)
}

var (
	epochDesc    = newDesc("epoch", "The number of the term in which this operator leads, 0 while it does not.")
	nodesDesc    = newDesc("nodes", "Nodes by who calls the cloud for them: Self, Operator, or nobody while that changes.", "mode")
	queueDesc    = newDesc("queue", "Calls that wait for a token, by class.", "class")
	tokensDesc   = newDesc("tokens", "Requests that may be sent at once, by action.", "action")
	rateDesc     = newDesc("rate", "Requests per second that may be sent, by action: less for a while after the cloud has throttled.", "action")
	ageDesc      = newDesc("describe_age_seconds", "How long ago the last describe of everything began.")
	subnetLabels = []string{"subnet"}
	roomDesc     = newDesc("subnet_room", "Addresses of the subnet that are left for new ENIs. Below zero more was taken than there should be.", subnetLabels...)
	freeDesc     = newDesc("subnet_free", "Free addresses of the subnet, as the last describe showed them.", subnetLabels...)
	owedDesc     = newDesc("subnet_owed", "Addresses of the subnet that its ENIs are still to get.", subnetLabels...)
	fullDesc     = newDesc("subnet_full", "Whether the subnet has no address left.", subnetLabels...)
)

// plain are the gauges without labels.
var plain = []struct {
	desc  *prometheus.Desc
	value func(operator.Report) int
}{
	{newDesc("satisfied", "Nodes with an operator that have what they ask for."), func(r operator.Report) int { return r.Satisfied }},
	{newDesc("short", "Slots that nodes ask for and do not have."), func(r operator.Report) int { return r.Short }},
	{newDesc("waiting", "Pods that wait for an address."), func(r operator.Report) int { return r.Waiting }},
	{newDesc("quarantined", "Addresses that may be attached and are not served, because a late call may still take them away."), func(r operator.Report) int { return r.Quarantined }},
	{newDesc("under_way", "Calls to the cloud that are under way."), func(r operator.Report) int { return r.UnderWay }},
}

// Describe names the gauges.
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, p := range plain {
		out <- p.desc
	}
	for _, d := range []*prometheus.Desc{epochDesc, nodesDesc, queueDesc, tokensDesc, rateDesc, ageDesc, roomDesc, freeDesc, owedDesc, fullDesc} {
		out <- d
	}
}

// Collect tells what the operator knows, and of one that does not lead only that.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, n float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now, err := g.of.Report(ctx)
	tell(epochDesc, float64(now.Epoch))
	if err != nil {
		return
	}
	for _, p := range plain {
		tell(p.desc, float64(p.value(now)))
	}
	for _, mode := range []crd.Mode{crd.Self, crd.Operator, crd.Joining, crd.Leaving} {
		tell(nodesDesc, float64(now.Nodes[string(mode)]), string(mode))
	}
	for _, q := range now.Queue {
		tell(queueDesc, float64(q.Count), q.Class)
	}
	for _, b := range now.Budget {
		tell(tokensDesc, b.Tokens, b.Action)
		tell(rateDesc, b.PerSecond, b.Action)
	}
	if now.DescribedAt != nil {
		tell(ageDesc, time.Since(*now.DescribedAt).Seconds())
	}
	for _, s := range now.Subnets {
		tell(roomDesc, float64(s.Room), s.ID)
		tell(freeDesc, float64(s.Free), s.ID)
		tell(owedDesc, float64(s.Owed), s.ID)
		tell(fullDesc, oneIf(s.State == "Full"), s.ID)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

package web

import (
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/enipool/enipool/pkg/status"
	"github.com/prometheus/client_golang/prometheus"
)

// observed is a status as it came in.
type observed struct {
	status.Status
	at      time.Time
	subnets []subnet
}

// subnet is one that was exhausted at some time since the agent started.
type subnet struct {
	id        string
	exhausted bool
}

// subnetsOf keeps the subnets of the status before, which may be nil: their series
// go down to 0 and don't break off.
func subnetsOf(before *observed, s status.Status) []subnet {
	var list []subnet
	for id := range strings.SplitSeq(s.Exhausted, ",") {
		if id = strings.TrimSpace(id); id != "" {
			list = append(list, subnet{id, true})
		}
	}
	if before != nil {
		for _, old := range before.subnets {
			if !slices.Contains(list, subnet{old.id, true}) {
				list = append(list, subnet{old.id, false})
			}
		}
	}
	slices.SortFunc(list, func(a, b subnet) int { return strings.Compare(a.id, b.id) })
	return slices.Compact(list)
}

// reasons are all that a target has.
var reasons = []scale.Reason{scale.Steady, scale.Up, scale.Release, scale.HoldDelay, scale.HoldStable, scale.HoldBurst,
	scale.HoldBoot, scale.HoldUnreadable, scale.HoldInterval, scale.Exhausted, scale.Clamped}

// gauges are the metrics made from the newest status. A scrape sees one status as
// a whole and never a mixture of two ticks.
type gauges struct{ m *Metrics }

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	readyDesc     = newDesc("enipool_ready", "Whether pods can get addresses and the agent does its work.")
	addressesDesc = newDesc("enipool_addresses", "Addresses on the node's ENIs for pods, by state. Their sum is what is attached.", "state")
	reasonDesc    = newDesc("enipool_reason", "1 for the reason why the target is what it is, 0 for the others.", "reason")
	causeDesc     = newDesc("enipool_cause", "1 for the kind of what keeps pods from addresses, or the node from its work, 0 for the others.", "kind")
	exhaustedDesc = newDesc("enipool_subnet_exhausted", "Whether the subnet had no more addresses lately, for subnets that ever had none.", "subnet")
)

// gauge is one without labels.
type gauge struct {
	desc  *prometheus.Desc
	value func(*status.Status) int
}

// limited are the gauges of what follows from the node's limits.
var limited = []gauge{
	{newDesc("enipool_need", "Slots that the sizing makes of the demand."), func(now *status.Status) int { return now.Need }},
	{newDesc("enipool_most", "Slots that the node can ever hold."), func(now *status.Status) int { return now.Most }},
	{newDesc("enipool_eni_limit", "ENIs that the instance may carry."), func(now *status.Status) int { return now.ENILimit }},
}

// plain are the others without labels.
var plain = []gauge{
	{newDesc("enipool_demand", "Slots that pods and pending ADDs need now."), func(now *status.Status) int { return now.Demand }},
	{newDesc("enipool_target", "Slots that there shall be, after damping."), func(now *status.Status) int { return now.Target }},
	{newDesc("enipool_in_burst", "Whether the demand bursts, which freezes releases."), func(now *status.Status) int { return oneIf(now.Burst) }},
	{newDesc("enipool_max_pods", "Pods that the node may run."), func(now *status.Status) int { return now.MaxPods }},
	{newDesc("enipool_enis", "ENIs that are attached, the primary ENI among them."), func(now *status.Status) int { return now.ENIs }},
	{newDesc("enipool_waiters", "Pending ADDs: those that wait for an address."), func(now *status.Status) int { return now.PendingADDs }},
	{newDesc("enipool_orphans", "Addresses of sandboxes that are gone, seen and not freed yet: stale allocations."), func(now *status.Status) int { return now.StaleAllocations }},
	{newDesc("enipool_in_flight", "Changes that the cloud is making."), func(now *status.Status) int { return len(now.InFlight) }},
	{newDesc("enipool_backoffs", "What is not tried for a while because it failed."), func(now *status.Status) int { return len(now.Backoff) }},
	{newDesc("enipool_quarantined", "ENIs or addresses of the node that are left out because what the cloud tells of them can't be right."), func(now *status.Status) int { return len(now.LeftOut) }},
	{newDesc("enipool_config_ok", "Whether the configuration file is right and in force. If not, the agent works with the one that was in force before."), func(now *status.Status) int { return oneIf(now.Refused == nil) }},
	{newDesc("enipool_links_missing", "ENIs that have lost their links on the node: their pods are cut off, and no other pod gets their addresses."), func(now *status.Status) int { return len(now.Unlinked) }},
	{newDesc("enipool_misrouted", "Routes of others in enipool's routing tables, and rules of others before enipool's, that pods' packets take."), func(now *status.Status) int { return len(now.Misrouted) }},
	{newDesc("enipool_repairs_undone", "Rules, routes, settings and the like that something else on the node undoes again and again after the agent has put them right."), func(now *status.Status) int { return len(now.Undone) }},
	{newDesc("enipool_blockers", "Causes why the target is out of reach."), func(now *status.Status) int { return len(now.TargetCauses) }},
}

// fastDesc, fastOffDesc and jumpedDesc tell of the fast path.
var (
	fastDesc    = newDesc("enipool_fast_path", "Whether packets of established connections pass the node by the short way.")
	fastOffDesc = newDesc("enipool_fast_path_off", "Causes why packets don't pass the node by the short way.", "cause")
	jumpedDesc  = newDesc("enipool_fast_path_packets_total", "Packets that took the short way past iptables and nftables, as of the last tick.", "direction")
)

// tellFastPath tells what the agent knows of it.
func tellFastPath(out chan<- prometheus.Metric, fast *status.FastPath) {
	if fast == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(fastDesc, prometheus.GaugeValue, float64(oneIf(len(fast.Off) == 0)))
	told := map[string]bool{}
	for _, cause := range fast.Off {
		// Names of others' chains are any bytes, and no series may come twice.
		if cause = strings.ToValidUTF8(cause, "?"); !told[cause] {
			told[cause] = true
			out <- prometheus.MustNewConstMetric(fastOffDesc, prometheus.GaugeValue, 1, cause)
		}
	}
	for direction, n := range map[string]uint64{"out": fast.Out, "in": fast.In, "local": fast.Local} {
		out <- prometheus.MustNewConstMetric(jumpedDesc, prometheus.CounterValue, float64(n), direction)
	}
}

// Describe names the gauges.
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, p := range slices.Concat(plain, limited) {
		out <- p.desc
	}
	for _, d := range []*prometheus.Desc{readyDesc, addressesDesc, reasonDesc, causeDesc, exhaustedDesc, fastDesc, fastOffDesc, jumpedDesc, faultDesc, capacityDesc, podsDesc, knownDesc} {
		out <- d
	}
}

// Collect tells the newest status. Before the first one there are no numbers to
// tell, but that the agent is not ready.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	newest := g.m.seen.Load()
	tell(readyDesc, oneIf(g.m.unready(newest) == ""))
	if newest == nil {
		return
	}
	told := plain
	if newest.Limited() {
		told = slices.Concat(plain, limited)
	}
	for _, p := range told {
		tell(p.desc, p.value(&newest.Status))
	}
	a := newest.Addresses
	tell(addressesDesc, a.Free, "free")
	tell(addressesDesc, a.Used, "used")
	tell(addressesDesc, a.Cooling, "cooling")
	tell(addressesDesc, a.Releasing, "releasing")
	tell(addressesDesc, a.Lost, "lost")
	tell(addressesDesc, a.HeldByOthers(), "held")
	tell(addressesDesc, a.Unlinked, "unlinked")
	tell(addressesDesc, a.Damaged, "damaged")
	tell(addressesDesc, a.Reserved, "reserved")
	for _, k := range pool.Kinds() {
		tell(causeDesc, oneIf(len(newest.Causes) > 0 && newest.Causes[0].Kind == k.String()), k.String())
	}
	for _, r := range reasons {
		tell(reasonDesc, oneIf(newest.Reason == string(r)), string(r))
	}
	if newest.Reason != "" && !slices.Contains(reasons, scale.Reason(newest.Reason)) {
		tell(reasonDesc, 1, newest.Reason)
	}
	tellCluster(tell, &newest.Status)
	tellFastPath(out, newest.FastPath)
	for _, n := range newest.subnets {
		tell(exhaustedDesc, oneIf(n.exhausted), n.id)
	}
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

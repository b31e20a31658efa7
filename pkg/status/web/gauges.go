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

// sight is a status as it came in.
type sight struct {
	status.Status
	at      time.Time
	subnets []subnet
}

// subnet is one that was exhausted at some time since the agent started.
type subnet struct {
	id        string
	exhausted bool
}

// subnetsOf keeps the subnets of the sight before, which may be nil: their series
// go down to 0 and don't break off.
func subnetsOf(before *sight, s status.Status) []subnet {
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

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	readyDesc     = describe("enipool_ready", "Whether pods can get addresses and the agent does its work.")
	addressesDesc = describe("enipool_addresses", "Addresses on the node's ENIs for pods, by state. Their sum is what is attached.", "state")
	reasonDesc    = describe("enipool_reason", "1 for the reason why the target is what it is, 0 for the others.", "reason")
	causeDesc     = describe("enipool_cause", "1 for the kind of what keeps pods from addresses, or the node from its work, 0 for the others.", "kind")
	exhaustedDesc = describe("enipool_subnet_exhausted", "Whether the subnet had no more addresses lately, for subnets that ever had none.", "subnet")
)

// gauge is one without labels.
type gauge struct {
	desc  *prometheus.Desc
	value func(*status.Status) int
}

// limited are the gauges of what follows from the node's limits.
var limited = []gauge{
	{describe("enipool_need", "Slots that the sizing makes of the demand."), func(s *status.Status) int { return s.Need }},
	{describe("enipool_most", "Slots that the node can ever hold."), func(s *status.Status) int { return s.Most }},
	{describe("enipool_eni_limit", "ENIs that the instance may carry."), func(s *status.Status) int { return s.ENILimit }},
}

// plain are the others without labels.
var plain = []gauge{
	{describe("enipool_demand", "Slots that pods and waiting ADDs want now."), func(s *status.Status) int { return s.Demand }},
	{describe("enipool_target", "Slots that there shall be, after damping."), func(s *status.Status) int { return s.Target }},
	{describe("enipool_in_burst", "Whether the demand bursts, which freezes releases."), func(s *status.Status) int { return number(s.Burst) }},
	{describe("enipool_max_pods", "Pods that the node may run."), func(s *status.Status) int { return s.MaxPods }},
	{describe("enipool_enis", "ENIs that are attached, the node's own among them."), func(s *status.Status) int { return s.ENIs }},
	{describe("enipool_waiters", "ADDs that wait for an address."), func(s *status.Status) int { return s.Waiters }},
	{describe("enipool_orphans", "Addresses of dead sandboxes that were seen and are not taken back yet."), func(s *status.Status) int { return s.Orphans }},
	{describe("enipool_in_flight", "Changes that the cloud is making."), func(s *status.Status) int { return len(s.InFlight) }},
	{describe("enipool_backoffs", "Things left alone for a while because they failed."), func(s *status.Status) int { return len(s.Backoff) }},
	{describe("enipool_quarantined", "ENIs or addresses of the node that are left out because what the cloud tells of them can't be right."), func(s *status.Status) int { return len(s.LeftOut) }},
	{describe("enipool_config_ok", "Whether the configuration file is right and in force. If not, the agent works with the one that was in force before."), func(s *status.Status) int { return number(s.Refused == nil) }},
	{describe("enipool_links_missing", "ENIs that have lost their links on the node: their pods are cut off, and no other pod gets their addresses."), func(s *status.Status) int { return len(s.Unlinked) }},
	{describe("enipool_misrouted", "Routes of others in enipool's routing tables, and rules of others before enipool's, that pods' packets take."), func(s *status.Status) int { return len(s.Misrouted) }},
	{describe("enipool_repairs_undone", "Rules, routes, settings and the like that something else on the node undoes again and again after the agent has put them right."), func(s *status.Status) int { return len(s.Undone) }},
	{describe("enipool_blockers", "Causes why the target is out of reach."), func(s *status.Status) int { return len(s.Blockers) }},
}

// fastDesc, fastOffDesc and jumpedDesc tell of the fast path.
var (
	fastDesc    = describe("enipool_fast_path", "Whether packets of established connections pass the node by the short way.")
	fastOffDesc = describe("enipool_fast_path_off", "Causes why packets don't pass the node by the short way.", "cause")
	jumpedDesc  = describe("enipool_fast_path_packets_total", "Packets that took the short way past iptables and nftables, as of the last tick.", "direction")
)

// tellFastPath tells what the agent knows of it.
func tellFastPath(out chan<- prometheus.Metric, f *status.FastPath) {
	if f == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(fastDesc, prometheus.GaugeValue, float64(number(len(f.Off) == 0)))
	told := map[string]bool{}
	for _, cause := range f.Off {
		// Names of others' chains are any bytes, and no series may come twice.
		if cause = strings.ToValidUTF8(cause, "?"); !told[cause] {
			told[cause] = true
			out <- prometheus.MustNewConstMetric(fastOffDesc, prometheus.GaugeValue, 1, cause)
		}
	}
	for direction, n := range map[string]uint64{"out": f.Out, "in": f.In, "local": f.Local} {
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
	s := g.m.seen.Load()
	tell(readyDesc, number(g.m.unready(s) == ""))
	if s == nil {
		return
	}
	told := plain
	if s.Limited() {
		told = slices.Concat(plain, limited)
	}
	for _, p := range told {
		tell(p.desc, p.value(&s.Status))
	}
	a := s.Addresses
	tell(addressesDesc, a.Free, "free")
	tell(addressesDesc, a.Used, "used")
	tell(addressesDesc, a.Cooling, "cooling")
	tell(addressesDesc, a.Releasing, "releasing")
	tell(addressesDesc, a.Lost, "lost")
	tell(addressesDesc, a.Held, "held")
	tell(addressesDesc, a.Damaged, "damaged")
	for _, k := range pool.Kinds() {
		tell(causeDesc, number(len(s.Causes) > 0 && s.Causes[0].Kind == k.String()), k.String())
	}
	for _, r := range reasons {
		tell(reasonDesc, number(s.Reason == string(r)), string(r))
	}
	if s.Reason != "" && !slices.Contains(reasons, scale.Reason(s.Reason)) {
		tell(reasonDesc, 1, s.Reason)
	}
	tellCluster(tell, &s.Status)
	tellFastPath(out, s.FastPath)
	for _, n := range s.subnets {
		tell(exhaustedDesc, number(n.exhausted), n.id)
	}
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

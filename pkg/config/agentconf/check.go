package agentconf

import (
	"fmt"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// derive sets what follows from other keys where the file says nothing.
func (r *reader) derive(c *Config) {
	_, c.ModeSet = r.values["pool.mode"]
	if !c.ModeSet {
		r.deriveMode(&c.Pool)
	}
	if _, ok := r.values["cloud.describe"]; !ok && c.Cloud.Provider != Sim && c.Cloud.Describe == 0 {
		c.Cloud.Describe = SpareDescribe
	}
	if _, ok := r.values["pool.maxFree"]; !ok {
		c.Pool.Scale.MaxFree = c.Pool.Scale.MinFree + 100
	}
}

// deriveMode goes by sources/cce-planned-cluster-mode.md: 3.2.4 leaves a node that was set
// up with a watermark what it is, and in 3.2.2.1 burstableMehrfachENI is what tells the
// mode. 0 is "not burstable", and the other pool there is the best-effort one of 3.2.1.
func (r *reader) deriveMode(p *pool.Config) {
	switch {
	case p.MaxAboveWatermark > 0 || p.Multiple == 0:
		p.Mode = pool.BestEffort
	case r.values[multipleAlias] != nil:
		p.Mode = pool.Burstable
	}
}

// check judges the keys together. Each error names the key to change.
func (r *reader) check(c *Config) {
	r.checkNode(c)
	r.checkCloud(&c.Cloud)
	r.checkSizes(c)
	r.checkModes(&c.Pool)
	if !r.compares {
		r.checkProvider(c)
		r.checkStrategy(c)
	}
}

func (r *reader) checkNode(c *Config) {
	if c.Cache == c.State && r.sound("cache", "state") {
		r.wrong("state", c.State, "another file than cache")
	}
	if c.Settings.SNAT && len(c.Settings.VPC) == 0 && r.sound("snat", "vpcCIDRs") {
		r.wrong("vpcCIDRs", "[]", "the VPC's ranges when snat is true, so that pods keep their addresses inside it")
	}
	if !c.AnyFirewall && c.Settings.Firewall == ipam.Iptables && c.Settings.Routing == ipam.Map && r.sound("firewall", "routing") {
		r.wrong("routing", c.Settings.Routing.String(), "rule with firewall iptables: routing map needs nftables")
	}
	if least := c.Settle + c.Cloud.Timeout; c.LeakAge < least && r.sound("leakAge", "settle", "cloud.timeout") {
		r.wrong("leakAge", short(c.LeakAge), fmt.Sprintf("at least settle plus cloud.timeout, %s, so that no ENI is deleted that is still being made", short(least)))
	}
}

// noManage is the tag by which people tell AWS' own plugin, and enipool, to leave an ENI alone.
const noManage = "node.k8s.amazonaws.com/no_manage"

func (r *reader) checkCloud(c *Cloud) {
	if !r.sound("cloud", "cloud.provider", "cloud.endpoint") {
		return
	}
	if c.Provider == Sim && !validEndpoint(c.Endpoint) {
		r.wrong("cloud.endpoint", c.Endpoint, wantEndpoint)
	}
	if c.Provider != Sim && c.Endpoint != "" && !validURL(c.Endpoint) {
		r.wrong("cloud.endpoint", c.Endpoint, wantURL)
	}
	if c.Prefixes && c.Provider == Baidu && r.sound("cloud.prefixes") {
		r.wrong("cloud.prefixes", c.Prefixes, "false with provider baidu, whose ENIs take no prefixes")
	}
	if c.Provider == AWS && c.Tags[noManage] == "true" && r.sound("cloud.tags") {
		r.wrong("cloud.tags["+noManage+"]", "true", "removed: enipool, too, leaves ENIs with this tag alone, and could use none that it makes")
	}
	if c.Provider == Baidu {
		return
	}
	for _, k := range []struct {
		name string
		set  bool
	}{{"cloud.kind", c.Kind != ""}, {"cloud.vpc", c.VPC != ""}, {"cloud.zone", c.Zone != ""},
		{"cloud.maxENIs", c.MaxENIs > 0}, {"cloud.maxIPsPerENI", c.MaxIPsPerENI > 0}} {
		if k.set && r.sound(k.name) {
			r.wrong(k.name, r.values[k.name], "removed with provider "+c.Provider+": only baidu has this key")
		}
	}
}

func (r *reader) checkSizes(c *Config) {
	s, most := c.Pool.Scale, c.Pool.MaxAllocate
	if s.MaxFree < s.MinFree+100 && r.sound("pool.maxFree", "pool.minFree") {
		r.wrong("pool.maxFree", fmt.Sprintf("%d%%", s.MaxFree), fmt.Sprintf("at least pool.minFree and a whole batch, %d%%: "+
			"with less the pool would grow and shrink in turns", s.MinFree+100))
	}
	if s.BurstWindow > s.Stable && r.sound("pool.burstWindow", "pool.stable") {
		r.wrong("pool.burstWindow", short(s.BurstWindow), "at most pool.stable, "+short(s.Stable))
	}
	if p := c.Pool; p.MaxAllocateENI > 0 && p.PreAllocateENI > p.MaxAllocateENI && r.sound("pool.preAllocateENI", "pool.maxAllocateENI") {
		r.wrong("pool.preAllocateENI", p.PreAllocateENI, fmt.Sprintf("at most pool.maxAllocateENI, %d", p.MaxAllocateENI))
	}
	if most == 0 || !r.sound("pool.maxAllocate") {
		return
	}
	for _, n := range []struct {
		key   string
		value int
		holds bool // in this mode, or because the file says so
	}{
		{"pool.batch", s.Batch, c.Pool.Mode == pool.Batch},
		{"pool.minPool", s.MinPool, true},
		{"pool.minAllocate", c.Pool.MinAllocate, true},
	} {
		_, written := r.values[n.key]
		if n.value > most && (n.holds || written) && r.sound(n.key) {
			r.wrong(n.key, n.value, fmt.Sprintf("at most pool.maxAllocate, %d", most))
		}
	}
}

// checkProvider tells who wrote the former name of a cloud what it is called now.
func (r *reader) checkProvider(c *Config) {
	if r.values["cloud.provider"] == formerBaidu {
		c.Warnings = append(c.Warnings, `cloud.provider: "`+formerBaidu+`": this cloud is called `+Baidu+
			` now: write that once all nodes run this release, because the next one refuses the old name`)
	}
}

// checkStrategy keeps a strategy off real nodes that nobody has a use for there: with it
// pods wait for one batch after the other. Nodes that an older release took it for are to
// run on after an upgrade, so it is replaced, and the next release may refuse it.
func (r *reader) checkStrategy(c *Config) {
	if c.Pool.Scale.Strategy == scale.Reactive && c.Cloud.Provider != Sim && r.sound("pool.strategy", "cloud.provider") {
		c.Pool.Scale.Strategy = scale.Equation
		c.Warnings = append(c.Warnings, `pool.strategy: "reactive": the agent goes on with equation, for with provider `+c.Cloud.Provider+
			" reactive is no strategy: remove the key or name equation or kpa, because the next release refuses it")
	}
}

func (r *reader) checkModes(p *pool.Config) {
	if above := p.MaxAboveWatermark; p.Mode != pool.BestEffort && above > 0 && r.sound("pool.mode", "pool.maxAboveWatermark") {
		r.wrong("pool.mode", r.values["pool.mode"], fmt.Sprintf("besteffort while pool.maxAboveWatermark is %d: "+
			"to change the mode remove pool.maxAboveWatermark", above))
	}
	const multiple = "pool.burstableMultiple"
	name, alias := multiple, r.values[multipleAlias]
	if alias != nil {
		name = multipleAlias
	}
	if r.values[multiple] != nil && alias != nil {
		r.wrong(multipleAlias, alias, "removed: it is another name of "+multiple+", which is there too")
	}
	if p.Mode == pool.Burstable && p.Multiple == 0 && r.sound("pool.mode", name) {
		r.wrong(name, 0, "at least 1 in mode burstable: without burstable ENIs the mode is batch or besteffort")
	}
}

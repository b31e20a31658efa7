package agentconf

import (
	"fmt"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// reader judges the values of a file together.
type reader struct {
	*keys.Reader

	compares bool // it is for a simulation, which may have what no node may
}

// deriveRest sets what follows from other keys where the file says nothing.
func (r *reader) deriveRest(conf *Config) {
	_, conf.ModeSet = r.Values["pool.mode"]
	if !conf.ModeSet {
		r.deriveMode(&conf.Pool)
	}
	if _, ok := r.Values["cloud.describe"]; !ok && conf.Cloud.Provider != Sim && conf.Cloud.Describe == 0 {
		conf.Cloud.Describe = SpareDescribe
	}
	if _, ok := r.Values["pool.maxFree"]; !ok {
		conf.Pool.Scale.MaxFree = conf.Pool.Scale.MinFree + 100
	}
}

// deriveMode follows sources/cce-planned-cluster-mode.md. By 3.2.4 a node that was set up with a
// watermark stays best effort. By 3.2.2.1 burstableMehrfachENI tells the mode: 0 is "not
// burstable", which is the best-effort pool of 3.2.1.
func (r *reader) deriveMode(modes *pool.Config) {
	switch {
	case modes.MaxAboveWatermark > 0 || modes.Multiple == 0:
		modes.Mode = pool.BestEffort
	case r.Values[multipleAlias] != nil:
		modes.Mode = pool.Burstable
	}
}

// checkTogether judges the keys together. Each error names the key to change.
func (r *reader) checkTogether(conf *Config) {
	r.checkNode(conf)
	r.checkCloud(&conf.Cloud)
	r.checkSizes(conf)
	r.checkModes(&conf.Pool)
	if conf.Cloud.Provider == Operator {
		r.checkOperated(conf)
	}
	if !r.compares {
		r.checkProvider(conf)
		r.checkStrategy(conf)
	}
}

func (r *reader) checkNode(conf *Config) {
	if conf.Cache == conf.State && r.AllSound("cache", "state") {
		r.AddError("state", conf.State, "another file than cache")
	}
	if conf.Settings.SNAT && len(conf.Settings.VPC) == 0 && r.AllSound("snat", "vpcCIDRs") {
		r.AddError("vpcCIDRs", "[]", "the VPC's ranges when snat is true, so that pods keep their addresses inside it")
	}
	if !conf.AnyFirewall && conf.Settings.Firewall == ipam.Iptables && conf.Settings.Routing == ipam.Map && r.AllSound("firewall", "routing") {
		r.AddError("routing", conf.Settings.Routing.String(), "rule with firewall iptables: routing map needs nftables")
	}
	if least := conf.Settle + conf.Cloud.Timeout; conf.LeakAge < least && r.AllSound("leakAge", "settle", "cloud.timeout") {
		r.AddError("leakAge", keys.ShortDuration(conf.LeakAge), fmt.Sprintf("at least settle plus cloud.timeout, %s, so that no ENI is deleted that is still being made", keys.ShortDuration(least)))
	}
}

// noManage is the tag by which people tell AWS' own plugin, and enipool, to leave an ENI alone.
const noManage = "node.k8s.amazonaws.com/no_manage"

func (r *reader) checkCloud(cloud *Cloud) {
	if !r.AllSound("cloud", "cloud.provider", "cloud.endpoint") {
		return
	}
	if cloud.Provider == Sim && !keys.IsEndpoint(cloud.Endpoint) {
		r.AddError("cloud.endpoint", cloud.Endpoint, keys.WantEndpoint)
	}
	if cloud.Provider == Operator {
		return // what the file has of a cloud is from before, and for the way back
	}
	if cloud.Provider != Sim && cloud.Endpoint != "" && !keys.IsURL(cloud.Endpoint) {
		r.AddError("cloud.endpoint", cloud.Endpoint, keys.WantURL)
	}
	if cloud.Prefixes && cloud.Provider == Baidu && r.AllSound("cloud.prefixes") {
		r.AddError("cloud.prefixes", cloud.Prefixes, "false with provider baidu, whose ENIs take no prefixes")
	}
	if cloud.Provider == AWS && cloud.Tags[noManage] == "true" && r.AllSound("cloud.tags") {
		r.AddError("cloud.tags["+noManage+"]", "true", "removed: enipool, too, leaves ENIs with this tag alone, and could use none that it makes")
	}
	if cloud.Provider == Baidu {
		return
	}
	for _, k := range []struct {
		name string
		set  bool
	}{{"cloud.kind", cloud.Kind != ""}, {"cloud.vpc", cloud.VPC != ""}, {"cloud.zone", cloud.Zone != ""},
		{"cloud.maxENIs", cloud.MaxENIs > 0}, {"cloud.maxIPsPerENI", cloud.MaxIPsPerENI > 0}} {
		if k.set && r.AllSound(k.name) {
			r.AddError(k.name, r.Values[k.name], "removed with provider "+cloud.Provider+": only baidu has this key")
		}
	}
}

// The most that a NodeNetwork takes.
const (
	mostOperated       = 4096 // addresses
	mostOperatedBatch  = 256
	mostOperatedSpares = 8 // ENIs
)

// checkOperated refuses what a node can't tell an operator.
func (r *reader) checkOperated(conf *Config) {
	if conf.Kubernetes.Enabled == Off && r.AllSound("kubernetes.enabled") {
		r.AddError("kubernetes.enabled", "false", "true or auto with provider operator, which the agent meets at the API server")
	}
	multiple := "pool.burstableMultiple"
	if r.Values[multipleAlias] != nil {
		multiple = multipleAlias
	}
	p := conf.Pool
	for _, n := range []struct {
		key         string
		value, most int
	}{
		{"pool.batch", p.Scale.Batch, mostOperatedBatch}, {multiple, p.Multiple, mostOperatedSpares}, {"pool.maxAllocate", p.MaxAllocate, mostOperated},
		{"pool.minAllocate", p.MinAllocate, mostOperated}, {"pool.preAllocate", p.PreAllocate, mostOperated}, {"pool.maxAboveWatermark", p.MaxAboveWatermark, mostOperated},
	} {
		if n.value > n.most && r.AllSound(n.key) {
			r.AddError(n.key, n.value, fmt.Sprintf("at most %d with provider operator", n.most))
		}
	}
}

func (r *reader) checkSizes(conf *Config) {
	sizing, most := conf.Pool.Scale, conf.Pool.MaxAllocate
	if sizing.MaxFree < sizing.MinFree+100 && r.AllSound("pool.maxFree", "pool.minFree") {
		r.AddError("pool.maxFree", fmt.Sprintf("%d%%", sizing.MaxFree), fmt.Sprintf("at least pool.minFree and a whole batch, %d%%: "+
			"with less the pool would grow and shrink in turns", sizing.MinFree+100))
	}
	if sizing.BurstWindow > sizing.Stable && r.AllSound("pool.burstWindow", "pool.stable") {
		r.AddError("pool.burstWindow", keys.ShortDuration(sizing.BurstWindow), "at most pool.stable, "+keys.ShortDuration(sizing.Stable))
	}
	if p := conf.Pool; p.MaxAllocateENI > 0 && p.PreAllocateENI > p.MaxAllocateENI && r.AllSound("pool.preAllocateENI", "pool.maxAllocateENI") {
		r.AddError("pool.preAllocateENI", p.PreAllocateENI, fmt.Sprintf("at most pool.maxAllocateENI, %d", p.MaxAllocateENI))
	}
	if most == 0 || !r.AllSound("pool.maxAllocate") {
		return
	}
	for _, n := range []struct {
		key   string
		value int
		holds bool // in this mode, or because the file says so
	}{
		{"pool.batch", sizing.Batch, conf.Pool.Mode == pool.Batch},
		{"pool.minPool", sizing.MinPool, true},
		{"pool.minAllocate", conf.Pool.MinAllocate, true},
	} {
		_, written := r.Values[n.key]
		if n.value > most && (n.holds || written) && r.AllSound(n.key) {
			r.AddError(n.key, n.value, fmt.Sprintf("at most pool.maxAllocate, %d", most))
		}
	}
}

// checkProvider warns of the former name of a cloud.
func (r *reader) checkProvider(conf *Config) {
	if r.Values["cloud.provider"] == formerBaidu {
		conf.Warnings = append(conf.Warnings, `cloud.provider: "`+formerBaidu+`": this cloud is called `+Baidu+
			` now: write that once all nodes run this release, because the next one refuses the old name`)
	}
}

// checkStrategy replaces the strategy reactive on real clouds, where pods would wait for one batch
// after the other. It does not refuse it yet: nodes that an older release took it for must run on
// after an upgrade.
func (r *reader) checkStrategy(conf *Config) {
	if conf.Pool.Scale.Strategy == scale.Reactive && conf.Cloud.Provider != Sim && r.AllSound("pool.strategy", "cloud.provider") {
		conf.Pool.Scale.Strategy = scale.Equation
		conf.Warnings = append(conf.Warnings, `pool.strategy: "reactive": the agent goes on with equation, for with provider `+conf.Cloud.Provider+
			" reactive is no strategy: remove the key or name equation or kpa, because the next release refuses it")
	}
}

func (r *reader) checkModes(modes *pool.Config) {
	if above := modes.MaxAboveWatermark; modes.Mode != pool.BestEffort && above > 0 && r.AllSound("pool.mode", "pool.maxAboveWatermark") {
		r.AddError("pool.mode", r.Values["pool.mode"], fmt.Sprintf("besteffort while pool.maxAboveWatermark is %d: "+
			"to change the mode remove pool.maxAboveWatermark", above))
	}
	const multiple = "pool.burstableMultiple"
	name, alias := multiple, r.Values[multipleAlias]
	if alias != nil {
		name = multipleAlias
	}
	if r.Values[multiple] != nil && alias != nil {
		r.AddError(multipleAlias, alias, "removed: it is another name of "+multiple+", which is there too")
	}
	if modes.Mode == pool.Burstable && modes.Multiple == 0 && r.AllSound("pool.mode", name) {
		r.AddError(name, 0, "at least 1 in mode burstable: without burstable ENIs the mode is batch or besteffort")
	}
}

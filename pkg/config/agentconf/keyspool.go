package agentconf

import (
	"fmt"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// sizeKeys say how large the pool is.
func sizeKeys(s *scale.Config) []key {
	return []key{
		oneOf("pool.strategy", &s.Strategy, choice[scale.Strategy]{"equation", scale.Equation}, choice[scale.Strategy]{"reactive", scale.Reactive},
			choice[scale.Strategy]{"kpa", scale.KPA}).
			live(release1, "Mode batch: equation computes the size in one step; kpa follows the mean of the used addresses; reactive, on the simulated VPC alone, moves by one batch."),
		number("pool.batch", &s.Batch, 1, 4096).in("addresses").live(release1, "Addresses are got and given back in multiples of this."),
		percent("pool.minFree", &s.MinFree, 0, 1000).live(release1, "Share of a batch: with fewer free addresses the pool grows."),
		percent("pool.maxFree", &s.MaxFree, 100, mostPercent).live(release1, "Share of a batch: with more free addresses the pool shrinks. At least, and by default, minFree and a whole batch."),
		flag("pool.countPrimaries", &s.CountPrimaries).live(release1, "Whether the ENIs' primary addresses count towards the batch."),
		oneOf("pool.primaryForm", &s.Form, choice[scale.Form]{"safe", scale.Safe}, choice[scale.Form]{"document", scale.Document}).
			live(release1, "How counted primary addresses are subtracted: safe keeps minFree for pods; document subtracts after rounding."),
		number("pool.minPool", &s.MinPool, 0, mostAddresses).in("addresses").live(release1, "The pool is never smaller than this."),
		seconds("pool.stable", &s.Stable, 5*time.Second, 10*time.Minute).live(release1, "The pool holds what the mean number of pods over this time needs."),
		seconds("pool.delay", &s.Delay, 0, time.Hour).live(release1, "The pool holds what the highest number of pods over this time needed."),
		seconds("pool.burstWindow", &s.BurstWindow, time.Second, 10*time.Minute).live(release1, "The time whose mean tells a burst; at most stable."),
		percent("pool.burst", &s.BurstPercent, 101, mostPercent).live(release1, "A burst, which freezes releases, begins when the mean over burstWindow needs this share of the pool."),
		percent("pool.shrink", &s.ShrinkPercent, 101, mostPercent).live(release1, "A step down divides the pool by at most this."),
		seconds("pool.releaseInterval", &s.ReleaseInterval, time.Second, time.Hour).live(release1, "The next step down comes no sooner than this."),
		number("pool.exhaustedSpare", &s.ExhaustedSpare, 0, 4096).in("addresses").live(release1, "What nodes keep beyond their pods' need where the subnet has no more addresses."),
		seconds("pool.exhaustedDelay", &s.ExhaustedDelay, 0, time.Hour).live(release1, "Over what time that need is the highest."),
	}
}

// kpaKeys are those of strategy kpa alone.
func kpaKeys(s *scale.Config) []key {
	return []key{
		percent("pool.utilization", &s.KPA.Utilization, 1, 100).live(unreleased, "Strategy kpa: how much of a batch pods should use."),
		percent("pool.grow", &s.KPA.GrowPercent, 101, mostGrow).live(unreleased, "Strategy kpa: what a step up multiplies the pool by at most."),
		number("pool.activation", &s.KPA.Activation, 1, 4096).in("batches").live(unreleased, "Strategy kpa: the fewest batches where there are any."),
		oneOf("pool.kpaForm", &s.KPA.Form, choice[scale.KPAForm]{"document", scale.KPADocument}, choice[scale.KPAForm]{"knative", scale.KPAKnative}).
			live(unreleased, "Strategy kpa: activation counts whenever batches are wanted (document), or whenever pods ask for some (knative)."),
	}
}

// multipleAlias is what CCE calls pool.burstableMultiple.
const multipleAlias = "pool.burstableMehrfachENI"

// poolKeys say what ENIs there are, and by which mode.
func poolKeys(p *pool.Config) []key {
	return []key{
		oneOf("pool.mode", &p.Mode, choice[pool.Mode]{"batch", pool.Batch}, choice[pool.Mode]{"burstable", pool.Burstable},
			choice[pool.Mode]{"besteffort", pool.BestEffort}).depends().
			live(release1, "How the node holds addresses ready; not named, a node keeps the mode it has, and a new one has what maxAboveWatermark and burstableMehrfachENI say, else batch."),
		number("pool.firstENI", &p.FirstENI, 0, 1).in("device index").live(release1, "The lowest device index whose addresses are for pods."),
		number("pool.maxAllocate", &p.MaxAllocate, 0, mostAddresses).in("addresses").live(release1, "The most addresses for pods on the node; 0: as many as it can carry."),
		number("pool.maxAllocateENI", &p.MaxAllocateENI, 0, eni.MaxIndex+1).in("ENIs").live(unreleased, "The most ENIs for pods on the node; 0: as many as the instance may have."),
		one("pool.maxIPsPerENI", fmt.Sprintf("0, or a whole number from 2 to %d", mostPerENI), func(text string) bool {
			n, err := strconv.Atoi(text)
			p.MaxIPsPerENI = n
			return err == nil && n >= 0 && n <= mostPerENI && n != 1 // of one, the primary, no pod has anything
		}).at(singlePlace(&p.MaxIPsPerENI, func() any { return p.MaxIPsPerENI })).
			of(rule{"type": []string{"integer", "string", "null"}, "minimum": 0, "maximum": mostPerENI, "not": rule{"const": 1}, "pattern": "^[0-9]+$"}).
			in("addresses").live(unreleased, "The most addresses of a family on an ENI, its primary among them; 0: as many as it may have."),
		number("pool.preAllocateENI", &p.PreAllocateENI, 0, eni.MaxIndex+1).in("ENIs").live(unreleased, "How many ENIs for pods are made before pods need them."),
		number("pool.burstableMultiple", &p.Multiple, 0, eni.MaxIndex).in("ENIs").live(release1, "Mode burstable: how many ENIs' worth of addresses is kept free; 0: not burstable."),
		number(multipleAlias, &p.Multiple, 0, eni.MaxIndex).in("ENIs").depends().live(release1, "CCE's name of burstableMultiple; not named a mode, 1 or more is burstable and 0 besteffort."),
		flag("pool.partial", &p.Partial).live(release1, "Mode burstable: whether an ENI is made where the subnet can't fill it."),
		flag("pool.returnENIs", &p.ReturnENIs).live(release1, "Mode burstable: whether idle ENIs beyond burstableMultiple are given back."),
		number("pool.minAllocate", &p.MinAllocate, 0, mostAddresses).in("addresses").live(release1, "Mode besteffort: addresses that there are at least."),
		number("pool.preAllocate", &p.PreAllocate, 0, mostAddresses).in("addresses").live(release1, "Mode besteffort: free addresses to keep."),
		number("pool.maxAboveWatermark", &p.MaxAboveWatermark, 0, mostAddresses).in("addresses").
			live(release1, "Mode besteffort: free addresses beyond preAllocate before any is given back. With another mode named it must be 0 or absent."),
	}
}

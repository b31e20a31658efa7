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
func sizeKeys(sizing *scale.Config) []key {
	return []key{
		choiceKey("pool.strategy", &sizing.Strategy, choice[scale.Strategy]{"equation", scale.Equation}, choice[scale.Strategy]{"reactive", scale.Reactive},
			choice[scale.Strategy]{"kpa", scale.KPA}).
			live(release1, "Mode batch: equation computes the size in one step; kpa follows the mean of the used addresses; reactive, on the simulated VPC alone, moves by one batch."),
		numberKey("pool.batch", &sizing.Batch, 1, 4096).in("addresses").live(release1, "Addresses are assigned and released in multiples of this."),
		percentKey("pool.minFree", &sizing.MinFree, 0, 1000).live(release1, "Share of a batch: with fewer free addresses the pool grows."),
		percentKey("pool.maxFree", &sizing.MaxFree, 100, mostPercent).live(release1, "Share of a batch: with more free addresses the pool shrinks. At least, and by default, minFree and a whole batch."),
		flagKey("pool.countPrimaries", &sizing.CountPrimaries).live(release1, "Whether the ENIs' primary addresses count towards the batch."),
		choiceKey("pool.primaryForm", &sizing.Form, choice[scale.Form]{"safe", scale.Safe}, choice[scale.Form]{"document", scale.Document}).
			live(release1, "How counted primary addresses are subtracted: safe keeps minFree for pods; document subtracts after rounding."),
		numberKey("pool.minPool", &sizing.MinPool, 0, mostAddresses).in("addresses").live(release1, "The pool is never smaller than this."),
		secondsKey("pool.stable", &sizing.Stable, 5*time.Second, 10*time.Minute).live(release1, "The pool holds what the mean number of pods over this time needs."),
		secondsKey("pool.delay", &sizing.Delay, 0, time.Hour).live(release1, "The pool holds what the highest number of pods over this time needed."),
		secondsKey("pool.burstWindow", &sizing.BurstWindow, time.Second, 10*time.Minute).live(release1, "The time whose mean tells a burst; at most stable."),
		percentKey("pool.burst", &sizing.BurstPercent, 101, mostPercent).live(release1, "A burst, which freezes releases, begins when the mean over burstWindow needs this share of the pool."),
		percentKey("pool.shrink", &sizing.ShrinkPercent, 101, mostPercent).live(release1, "A step down divides the pool by at most this."),
		secondsKey("pool.releaseInterval", &sizing.ReleaseInterval, time.Second, time.Hour).live(release1, "The next step down comes no sooner than this."),
		numberKey("pool.exhaustedSpare", &sizing.ExhaustedSpare, 0, 4096).in("addresses").live(release1, "What nodes keep beyond their pods' need where the subnet has no more addresses."),
		secondsKey("pool.exhaustedDelay", &sizing.ExhaustedDelay, 0, time.Hour).live(release1, "Over what time that need is the highest."),
	}
}

// kpaKeys are those of strategy kpa alone.
func kpaKeys(sizing *scale.Config) []key {
	return []key{
		percentKey("pool.utilization", &sizing.KPA.Utilization, 1, 100).live(unreleased, "Strategy kpa: how much of a batch pods should use."),
		percentKey("pool.grow", &sizing.KPA.GrowPercent, 101, mostGrow).live(unreleased, "Strategy kpa: what a step up multiplies the pool by at most."),
		numberKey("pool.activation", &sizing.KPA.Activation, 1, 4096).in("batches").live(unreleased, "Strategy kpa: the fewest batches where there are any."),
		choiceKey("pool.kpaForm", &sizing.KPA.Form, choice[scale.KPAForm]{"document", scale.KPADocument}, choice[scale.KPAForm]{"knative", scale.KPAKnative}).
			live(unreleased, "Strategy kpa: activation counts whenever batches are wanted (document), or whenever pods ask for some (knative)."),
	}
}

// multipleAlias is what CCE calls pool.burstableMultiple.
const multipleAlias = "pool.burstableMehrfachENI"

// poolKeys say what ENIs there are, and by which mode.
func poolKeys(modes *pool.Config) []key {
	return []key{
		choiceKey("pool.mode", &modes.Mode, choice[pool.Mode]{"batch", pool.Batch}, choice[pool.Mode]{"burstable", pool.Burstable},
			choice[pool.Mode]{"besteffort", pool.BestEffort}).noDefault().
			live(release1, "How the node holds addresses ready; not named, a node keeps the mode it has, and a new one has what maxAboveWatermark and burstableMehrfachENI say, else batch."),
		numberKey("pool.firstENI", &modes.FirstENI, 0, 1).in("device index").live(release1, "The lowest device index whose addresses are for pods."),
		numberKey("pool.maxAllocate", &modes.MaxAllocate, 0, mostAddresses).in("addresses").live(release1, "The most addresses for pods on the node; 0: as many as it can carry."),
		numberKey("pool.maxAllocateENI", &modes.MaxAllocateENI, 0, eni.MaxIndex+1).in("ENIs").live(unreleased, "The most ENIs for pods on the node; 0: as many as the instance may have."),
		singleKey("pool.maxIPsPerENI", fmt.Sprintf("0, or a whole number from 2 to %d", mostPerENI), func(text string) bool {
			n, err := strconv.Atoi(text)
			modes.MaxIPsPerENI = n
			return err == nil && n >= 0 && n <= mostPerENI && n != 1 // of one, the primary, no pod has anything
		}).at(singlePlace(&modes.MaxIPsPerENI, func() any { return modes.MaxIPsPerENI })).
			of(rule{"type": []string{"integer", "string", "null"}, "minimum": 0, "maximum": mostPerENI, "not": rule{"const": 1}, "pattern": "^[0-9]+$"}).
			in("addresses").live(unreleased, "The most addresses of a family on an ENI, its primary among them; 0: as many as it may have."),
		numberKey("pool.preAllocateENI", &modes.PreAllocateENI, 0, eni.MaxIndex+1).in("ENIs").live(unreleased, "How many ENIs for pods are made before pods need them."),
		numberKey("pool.burstableMultiple", &modes.Multiple, 0, eni.MaxIndex).in("ENIs").live(release1, "Mode burstable: how many ENIs' worth of addresses is kept free; 0: not burstable."),
		numberKey(multipleAlias, &modes.Multiple, 0, eni.MaxIndex).in("ENIs").noDefault().live(release1, "CCE's name of burstableMultiple; not named a mode, 1 or more is burstable and 0 besteffort."),
		flagKey("pool.partial", &modes.Partial).live(release1, "Mode burstable: whether an ENI is made where the subnet can't fill it."),
		flagKey("pool.returnENIs", &modes.ReturnENIs).live(release1, "Mode burstable: whether idle ENIs beyond burstableMultiple are deleted."),
		numberKey("pool.minAllocate", &modes.MinAllocate, 0, mostAddresses).in("addresses").live(release1, "Mode besteffort: addresses that there are at least."),
		numberKey("pool.preAllocate", &modes.PreAllocate, 0, mostAddresses).in("addresses").live(release1, "Mode besteffort: free addresses to keep."),
		numberKey("pool.maxAboveWatermark", &modes.MaxAboveWatermark, 0, mostAddresses).in("addresses").
			live(release1, "Mode besteffort: free addresses beyond preAllocate before any is released. With another mode named it must be 0 or absent."),
	}
}

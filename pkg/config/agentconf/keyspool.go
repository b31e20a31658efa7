package agentconf

import (
	"fmt"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// sizeKeys say how large the pool is.
func sizeKeys(sizing *scale.Config) []keys.Key {
	return []keys.Key{
		keys.Choice("pool.strategy", &sizing.Strategy, keys.Named("equation", scale.Equation), keys.Named("reactive", scale.Reactive),
			keys.Named("kpa", scale.KPA)).
			Live(release1, "Mode batch: equation computes the size in one step; kpa follows the mean of the used addresses; reactive, on the simulated VPC alone, moves by one batch."),
		keys.Number("pool.batch", &sizing.Batch, 1, 4096).In("addresses").Live(release1, "Addresses are assigned and released in multiples of this."),
		keys.Percent("pool.minFree", &sizing.MinFree, 0, 1000).Live(release1, "Share of a batch: with fewer free addresses the pool grows."),
		keys.Percent("pool.maxFree", &sizing.MaxFree, 100, mostPercent).Live(release1, "Share of a batch: with more free addresses the pool shrinks. At least, and by default, minFree and a whole batch."),
		keys.Flag("pool.countPrimaries", &sizing.CountPrimaries).Live(release1, "Whether the ENIs' primary addresses count towards the batch."),
		keys.Choice("pool.primaryForm", &sizing.Form, keys.Named("safe", scale.Safe), keys.Named("document", scale.Document)).
			Live(release1, "How counted primary addresses are subtracted: safe keeps minFree for pods; document subtracts after rounding."),
		keys.Number("pool.minPool", &sizing.MinPool, 0, mostAddresses).In("addresses").Live(release1, "The pool is never smaller than this."),
		keys.Seconds("pool.stable", &sizing.Stable, 5*time.Second, 10*time.Minute).Live(release1, "The pool holds what the mean number of pods over this time needs."),
		keys.Seconds("pool.delay", &sizing.Delay, 0, time.Hour).Live(release1, "The pool holds what the highest number of pods over this time needed."),
		keys.Seconds("pool.burstWindow", &sizing.BurstWindow, time.Second, 10*time.Minute).Live(release1, "The time whose mean tells a burst; at most stable."),
		keys.Percent("pool.burst", &sizing.BurstPercent, 101, mostPercent).Live(release1, "A burst, which freezes releases, begins when the mean over burstWindow needs this share of the pool."),
		keys.Percent("pool.shrink", &sizing.ShrinkPercent, 101, mostPercent).Live(release1, "A step down divides the pool by at most this."),
		keys.Seconds("pool.releaseInterval", &sizing.ReleaseInterval, time.Second, time.Hour).Live(release1, "The next step down comes no sooner than this."),
		keys.Number("pool.exhaustedSpare", &sizing.ExhaustedSpare, 0, 4096).In("addresses").Live(release1, "What nodes keep beyond their pods' need where the subnet has no more addresses."),
		keys.Seconds("pool.exhaustedDelay", &sizing.ExhaustedDelay, 0, time.Hour).Live(release1, "Over what time that need is the highest."),
	}
}

// kpaKeys are those of strategy kpa alone.
func kpaKeys(sizing *scale.Config) []keys.Key {
	return []keys.Key{
		keys.Percent("pool.utilization", &sizing.KPA.Utilization, 1, 100).Live(unreleased, "Strategy kpa: how much of a batch pods should use."),
		keys.Percent("pool.grow", &sizing.KPA.GrowPercent, 101, mostGrow).Live(unreleased, "Strategy kpa: what a step up multiplies the pool by at most."),
		keys.Number("pool.activation", &sizing.KPA.Activation, 1, 4096).In("batches").Live(unreleased, "Strategy kpa: the fewest batches where there are any."),
		keys.Choice("pool.kpaForm", &sizing.KPA.Form, keys.Named("document", scale.KPADocument), keys.Named("knative", scale.KPAKnative)).
			Live(unreleased, "Strategy kpa: activation counts whenever batches are wanted (document), or whenever pods ask for some (knative)."),
	}
}

// multipleAlias is what CCE calls pool.burstableMultiple.
const multipleAlias = "pool.burstableMehrfachENI"

// poolKeys say what ENIs there are, and by which mode.
func poolKeys(modes *pool.Config) []keys.Key {
	return []keys.Key{
		keys.Choice("pool.mode", &modes.Mode, keys.Named("batch", pool.Batch), keys.Named("burstable", pool.Burstable),
			keys.Named("besteffort", pool.BestEffort)).NoDefault().
			Live(release1, "How the node holds addresses ready; not named, a node keeps the mode it has, and a new one has what maxAboveWatermark and burstableMehrfachENI say, else batch."),
		keys.Number("pool.firstENI", &modes.FirstENI, 0, 1).In("device index").Live(release1, "The lowest device index whose addresses are for pods."),
		keys.Number("pool.maxAllocate", &modes.MaxAllocate, 0, mostAddresses).In("addresses").Live(release1, "The most addresses for pods on the node; 0: as many as it can carry."),
		keys.Number("pool.maxAllocateENI", &modes.MaxAllocateENI, 0, eni.MaxIndex+1).In("ENIs").Live(unreleased, "The most ENIs for pods on the node; 0: as many as the instance may have."),
		keys.Single("pool.maxIPsPerENI", fmt.Sprintf("0, or a whole number from 2 to %d", mostPerENI), func(text string) bool {
			n, err := strconv.Atoi(text)
			modes.MaxIPsPerENI = n
			return err == nil && n >= 0 && n <= mostPerENI && n != 1 // of one, the primary, no pod has anything
		}).At(keys.ValueAt(&modes.MaxIPsPerENI, func() any { return modes.MaxIPsPerENI })).
			Of(keys.Rule{"type": []string{"integer", "string", "null"}, "minimum": 0, "maximum": mostPerENI, "not": keys.Rule{"const": 1}, "pattern": "^[0-9]+$"}).
			In("addresses").Live(unreleased, "The most addresses of a family on an ENI, its primary among them; 0: as many as it may have."),
		keys.Number("pool.preAllocateENI", &modes.PreAllocateENI, 0, eni.MaxIndex+1).In("ENIs").Live(unreleased, "How many ENIs for pods are made before pods need them."),
		keys.Number("pool.topologyPlaces", &modes.TopologyPlaces, 0, mostPlaces).In("addresses").Live(unreleased, "How many places for addresses on the node's ENIs are kept for pods of topologies: others never take them."),
		keys.Number("pool.burstableMultiple", &modes.Multiple, 0, eni.MaxIndex).In("ENIs").Live(release1, "Mode burstable: how many ENIs' worth of addresses is kept free; 0: not burstable."),
		keys.Number(multipleAlias, &modes.Multiple, 0, eni.MaxIndex).In("ENIs").NoDefault().Live(release1, "CCE's name of burstableMultiple; not named a mode, 1 or more is burstable and 0 besteffort."),
		keys.Flag("pool.partial", &modes.Partial).Live(release1, "Mode burstable: whether an ENI is made where the subnet can't fill it."),
		keys.Flag("pool.returnENIs", &modes.ReturnENIs).Live(release1, "Mode burstable: whether idle ENIs beyond burstableMultiple are deleted."),
		keys.Number("pool.minAllocate", &modes.MinAllocate, 0, mostAddresses).In("addresses").Live(release1, "Mode besteffort: addresses that there are at least."),
		keys.Number("pool.preAllocate", &modes.PreAllocate, 0, mostAddresses).In("addresses").Live(release1, "Mode besteffort: free addresses to keep."),
		keys.Number("pool.maxAboveWatermark", &modes.MaxAboveWatermark, 0, mostAddresses).In("addresses").
			Live(release1, "Mode besteffort: free addresses beyond preAllocate before any is released. With another mode named it must be 0 or absent."),
	}
}

package simulate

import (
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// poolText is the section of the agent's file that makes a pool as it is: the keys
// that a search changes.
func poolText(p pool.Config) string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "  %s: %v\n", key, value) }
	b.WriteString("pool:\n")
	line("mode", p.Mode)
	switch p.Mode {
	case pool.Batch:
		line("strategy", p.Scale.Strategy)
		line("batch", p.Scale.Batch)
		if p.Scale.Strategy == scale.KPA {
			line("utilization", fmt.Sprintf("%d%%", p.Scale.KPA.Utilization))
		} else {
			line("minFree", fmt.Sprintf("%d%%", p.Scale.MinFree))
			line("maxFree", fmt.Sprintf("%d%%", p.Scale.MaxFree))
		}
		line("minPool", p.Scale.MinPool)
	case pool.Burstable:
		line("burstableMultiple", p.Multiple)
		line("returnENIs", p.ReturnENIs)
	case pool.BestEffort:
		line("minAllocate", p.MinAllocate)
		line("preAllocate", p.PreAllocate)
		line("maxAboveWatermark", p.MaxAboveWatermark)
	}
	if p.TopologyPlaces > 0 {
		line("topologyPlaces", p.TopologyPlaces)
	}
	line("delay", keys.ShortDuration(p.Scale.Delay))
	return b.String()
}

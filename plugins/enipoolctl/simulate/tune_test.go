package simulate

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
)

func TestTheSectionToPasteMakesThePool(t *testing.T) {
	for name, change := range map[string]func(*pool.Config){
		"batch":     func(p *pool.Config) { p.Scale.Batch, p.Scale.MinFree, p.Scale.MaxFree, p.Scale.MinPool = 8, 25, 200, 5 },
		"reactive":  func(p *pool.Config) { p.Scale.Strategy = 1 },
		"kpa":       func(p *pool.Config) { p.Scale.Strategy, p.Scale.KPA.Utilization = 2, 90 },
		"burstable": func(p *pool.Config) { p.Mode, p.Multiple, p.ReturnENIs = pool.Burstable, 2, true },
		"besteffort": func(p *pool.Config) {
			p.Mode, p.PreAllocate, p.MinAllocate, p.MaxAboveWatermark = pool.BestEffort, 8, 4, 3
		},
		"delay": func(p *pool.Config) { p.Scale.Delay = 15 * time.Minute },
	} {
		want := agentconf.Default().Pool
		change(&want)
		text := poolText(want) + "snat: false\ncloud: {endpoint: \"unix:///run/vpc.sock\"}\n"
		got, err := agentconf.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		} else if diff := cmp.Diff(want, got.Pool); diff != "" || !got.ModeSet {
			t.Errorf("%s: mode set: %v\n%s", name, got.ModeSet, diff)
		}
	}
}

package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// variant is the base with another pool.
type variant struct {
	base agentconf.Config
	pool pool.Config
}

func (v variant) config() agentconf.Config {
	c := v.base
	c.Pool, c.ModeSet = v.pool, true
	return c
}

// sizes returns the base, then what a search tries in its place.
func sizes(base agentconf.Config) []variant {
	list := []variant{{base, base.Pool}}
	add := func(change func(*pool.Config)) {
		p := base.Pool
		p.Scale.Strategy, p.Scale.MinPool, p.MaxAboveWatermark = scale.Equation, 0, 0
		change(&p)
		if v := (variant{base, p}); p.Validate() == nil && v.name() != list[0].name() {
			list = append(list, v)
		}
	}
	for _, batch := range []int{1, 2, 4, 8, 16, 32} {
		for _, free := range []int{2, 4, 8, 16, 32} { // addresses
			percent := 100 * free / batch
			if percent < 25 || percent > 400 {
				continue
			}
			add(func(p *pool.Config) {
				p.Mode, p.Scale.Batch, p.Scale.MinFree, p.Scale.MaxFree = pool.Batch, batch, percent, percent+100
			})
		}
	}
	for _, batch := range []int{4, 16} {
		for _, used := range []int{50, 70, 90} {
			add(func(p *pool.Config) {
				p.Mode, p.Scale.Strategy, p.Scale.Batch, p.Scale.KPA.Utilization = pool.Batch, scale.KPA, batch, used
			})
		}
	}
	for multiple := 1; multiple <= 2; multiple++ {
		for _, returns := range []bool{false, true} {
			add(func(p *pool.Config) { p.Mode, p.Multiple, p.ReturnENIs = pool.Burstable, multiple, returns })
		}
	}
	for _, pre := range []int{2, 4, 8, 16, 32} {
		for _, above := range []int{0, 8} {
			add(func(p *pool.Config) {
				p.Mode, p.PreAllocate, p.MinAllocate, p.MaxAboveWatermark = pool.BestEffort, pre, pre, above
			})
		}
	}
	return list
}

// delays returns the candidates with other delays.
func delays(base agentconf.Config, of []Candidate) []variant {
	var list []variant
	for _, c := range of {
		for _, d := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute} {
			p := c.Config.Pool
			if p.Scale.Delay == d {
				continue
			}
			p.Scale.Delay = d
			list = append(list, variant{base, p})
		}
	}
	return list
}

// sameSize tells whether two pools differ in their delay alone.
func sameSize(a, b pool.Config) bool {
	a.Scale.Delay, b.Scale.Delay = 0, 0
	return a == b
}

// name is the setting as the flag --compare of enipoolctl has it, so that it can be
// played again with the same --config. Settings that differ in what a search changes have
// different names.
func (v variant) name() string {
	p := v.pool
	var parts []string
	mode := p.Mode.String()
	switch p.Mode {
	case pool.Batch:
		if p.Scale.Strategy != scale.Equation {
			mode = p.Scale.Strategy.String()
		}
		free := fmt.Sprintf("mf=%d%%", p.Scale.MinFree)
		if p.Scale.Strategy == scale.KPA {
			free = fmt.Sprintf("utilization=%d%%", p.Scale.KPA.Utilization)
		}
		parts = append(parts, fmt.Sprintf("B=%d", p.Scale.Batch), free)
		if p.Scale.Strategy != scale.KPA && p.Scale.MaxFree != p.Scale.MinFree+100 {
			parts = append(parts, fmt.Sprintf("Mf=%d%%", p.Scale.MaxFree))
		}
		if p.Scale.MinPool > 0 {
			parts = append(parts, fmt.Sprintf("minPool=%d", p.Scale.MinPool))
		}
	case pool.Burstable:
		parts = append(parts, fmt.Sprintf("multiple=%d", p.Multiple), fmt.Sprintf("returnENIs=%t", p.ReturnENIs))
	case pool.BestEffort:
		parts = append(parts, fmt.Sprintf("preAllocate=%d", p.PreAllocate), fmt.Sprintf("minAllocate=%d", p.MinAllocate),
			fmt.Sprintf("maxAboveWatermark=%d", p.MaxAboveWatermark))
	}
	parts = append(parts, "delay="+keys.ShortDuration(p.Scale.Delay))
	return mode + ":" + strings.Join(parts, ",")
}

package report

import "github.com/enipool/enipool/pkg/simulate"

// plots is what the page draws, in columns: a third of the size of the bins, and
// what the charting library takes.
type plots struct {
	Duration simulate.Seconds `json:"duration"`
	Step     simulate.Seconds `json:"step"` // length of a bin
	Settings []plot           `json:"settings"`
}

// plot is a setting's Series.
type plot struct {
	Name      string             `json:"name"`
	Pods      int                `json:"pods"`
	Waited    int                `json:"waited"`
	Start     []simulate.Seconds `json:"start"`
	Demand    []int              `json:"demand"`
	Target    []int              `json:"target"`
	Owned     []int              `json:"owned"`
	Free      []int              `json:"free"`
	Idle      []int              `json:"idle"`
	Waiting   []int              `json:"waiting"`
	Longest   []simulate.Seconds `json:"longest"`
	Calls     []int              `json:"calls"`
	Describes []int              `json:"looks"`
}

func plotsOf(r Report) plots {
	p := plots{Duration: r.Load.Duration, Step: r.binLength(), Settings: make([]plot, len(r.Results))}
	for i, one := range r.Results {
		p.Settings[i] = plotOf(one)
	}
	return p
}

func plotOf(r simulate.Result) plot {
	numbers := func(of func(simulate.Bin) int) []int {
		list := make([]int, len(r.Series))
		for i, b := range r.Series {
			list[i] = of(b)
		}
		return list
	}
	times := func(of func(simulate.Bin) simulate.Seconds) []simulate.Seconds {
		list := make([]simulate.Seconds, len(r.Series))
		for i, b := range r.Series {
			list[i] = of(b)
		}
		return list
	}
	return plot{
		Name: r.Name, Pods: r.Pods, Waited: r.Waits.Waited,
		Start:     times(func(b simulate.Bin) simulate.Seconds { return b.Start }),
		Demand:    numbers(func(b simulate.Bin) int { return b.Demand }),
		Target:    numbers(func(b simulate.Bin) int { return b.Target }),
		Owned:     numbers(func(b simulate.Bin) int { return b.Owned }),
		Free:      numbers(func(b simulate.Bin) int { return b.Free }),
		Idle:      numbers(func(b simulate.Bin) int { return b.Idle }),
		Waiting:   numbers(func(b simulate.Bin) int { return b.Waiting }),
		Longest:   times(func(b simulate.Bin) simulate.Seconds { return b.Longest }),
		Calls:     numbers(func(b simulate.Bin) int { return b.Calls }),
		Describes: numbers(func(b simulate.Bin) int { return b.Describes }),
	}
}

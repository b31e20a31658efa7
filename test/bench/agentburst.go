package main

import (
	"fmt"
	"time"
)

// burstSpacings are how far the ADDs of pods that are bound together are apart: a kubelet on
// a busy machine calls for them one after the other.
var burstSpacings = []time.Duration{0, 60 * time.Millisecond, 250 * time.Millisecond}

// mostBurst is in how many seconds the pool is to be complete: one call takes 0.3.
const mostBurst = 0.5

// burstRow measures how soon a node has what pods need that are bound to it at once.
func (b *bench) burstRow() error {
	rounds := b.pick(5, 1)
	b.progress("pods bound at once, %d times", rounds)
	out, skipped, err := b.benchmark("PodsBoundAtOnce", rounds)
	if err != nil || skipped {
		return err
	}
	for _, apart := range burstSpacings {
		what := fmt.Sprintf("40 pods bound at once, ADDs %s apart", apart)
		command := "enipool-agent with kubernetes.enabled; the cloud takes 0.3 s a call"
		complete := measure{what: what + ": pool complete", unit: "s", command: command}
		failed := measure{what: what + ": failed ADDs", unit: "ADD", command: command}
		for unit, m := range map[string]*measure{"complete-s": &complete, "failed-ADDs": &failed} {
			if err := m.fill(out, "PodsBoundAtOnce", apart.String(), unit); err != nil {
				return err
			}
		}
		b.report.add([]measure{complete, failed}, target{of: complete, want: mostBurst}, target{of: worst(failed), want: 0})
	}
	return nil
}

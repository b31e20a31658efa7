package cri

import (
	"fmt"
	"testing"
)

// Of an agent that is away pods notice nothing as long as there are addresses.
func TestPodsStartAndEndWithoutAnAgent(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testNode){
		"stopped": func(m *testNode) { m.agent.Stop() },
		"killed":  func(m *testNode) { m.agent.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newNode(newRegion(t, "away-"+name), "a", plan{limits: small})
			m.poolOf(16)
			before := m.run("before")
			end(m)
			var pods []*pod
			for i := range 14 {
				pods = append(pods, m.run(fmt.Sprintf("pod%d", i)))
			}
			for _, p := range pods {
				p.reach(before.ip.String(), internet)
			}
			before.end()
			pods[0].end()
			for _, p := range []*pod{before, pods[0]} {
				if got := m.stateOf(p); got != "cooling" {
					t.Errorf("after the end of %s its address is %s", p.config.Metadata.Name, got)
				}
			}
			m.agent.Start()
			m.poolOf(32) // with half a batch to spare
			m.run("after").reach(internet)
		})
	}
}

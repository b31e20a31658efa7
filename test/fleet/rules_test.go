package fleet

import "testing"

// Rules of the protocol that the world can switch off are needed, and schedules of what they are for would show that one is broken: with it
// switched off one of the first of them finds an address that a pod uses, or may get, and that its node does not have, or that two pods have.
func TestARuleThatIsSwitchedOffIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("what is switched off is found without the race detector")
	}
	for name, off := range map[string]func(*world){
		// What an agent says of the leader that it has read stops most of that, too.
		"writes carry the version that they were decided from": func(w *world) {
			w.store.blind, w.store.older = true, true
			w.mishaps = []string{"the store is put back from ten minutes ago", "the kinds are deleted and put back", "a node goes and another comes"}
		},
		"what may still take effect keeps its address in quarantine": func(w *world) {
			w.lease.Fence = timeout + w.lease.Settle
			w.mishaps = []string{"answers are lost, and effects late", "the leader is stopped for a minute in the middle of a release"}
		},
		"what an agent has seen outlasts a boot": func(w *world) {
			w.diskless = true
			w.mishaps = []string{"the power fails: nodes boot, the store is put back from ten minutes ago", "an operator is killed"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= mostSeeds; seed++ {
				bad, _ := run(t, seed, 4, stepsPerSeed, func(w *world) {
					w.hasty = true
					off(w)
				})
				if len(bad) > 0 {
					t.Logf("seed %d: %s", seed, bad[0])
					return
				}
			}
			t.Errorf("%d schedules do not find it", mostSeeds)
		})
	}
}

// mostSeeds is how many schedules may miss that a rule is switched off: of those that have the mishaps it is for, one in seven finds it.
const mostSeeds = 100

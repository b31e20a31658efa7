package agent

import (
	"bytes"
	"testing"
	"testing/synctest"
)

// A seed that has failed is of use if it fails again, at the same step.
func TestASeedIsTheSameRunEachTime(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ { // like BCE, and like EC2
		first, again := traceOf(t, seed), traceOf(t, seed)
		for n, line := range first {
			if n >= len(again) || !bytes.Equal(line, again[n]) {
				t.Errorf("seed %d: line %d of %d is %q, and the second time %q", seed, n, len(first), line, again[min(n, len(again)-1)])
				break
			}
		}
		t.Logf("seed %d: %d lines", seed, len(first))
	}
}

// traceOf is what happens in a run.
func traceOf(t *testing.T, seed uint64) [][]byte {
	var all bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s := newSoaker(t, seed, func(n *testNode) { n.w.trace, n.api = &all, &testAPI{} })
		for range 300 {
			if n := s.nodes[s.r.IntN(len(s.nodes))]; s.r.IntN(2) == 0 {
				s.clusterStep(n)
			} else {
				s.step()
			}
			s.after()
		}
		for _, n := range s.nodes {
			n.kill()
		}
	})
	return bytes.Split(all.Bytes(), []byte("\n"))
}

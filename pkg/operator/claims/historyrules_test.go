package claims_test

import "testing"

// Each of these rules is needed, and the histories would show that it is broken: with it left out one of the first finds that.
func TestHistoriesFindARuleThatIsLeftOut(t *testing.T) {
	for _, rule := range []string{first, withdraw, grace, uids, nobodys, ends, again} {
		t.Run(rule, func(t *testing.T) {
			for seed := uint64(1); seed <= mostHistories; seed++ {
				if bad := newWorld(seed, rule).play(stepsPerHistory); len(bad) > 0 {
					t.Logf("seed %d: %s", seed, bad[0])
					return
				}
			}
			t.Errorf("%d histories do not find it", mostHistories)
		})
	}
}

// mostHistories is how many may miss that a rule is left out.
const mostHistories = 60

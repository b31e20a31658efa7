package topology

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Who makes pods with a new name each time, as a Deployment does, uses a Sticky range up: what it had before is kept for names that never come back. The
// page says so.
func TestPodsWithNewNamesUseAStickyRangeUp(t *testing.T) {
	k, of := twoZones(Sticky, "", "16-19")
	rollout := func(n int, now time.Time) Wait {
		for i := range 2 {
			name := fmt.Sprintf("web-%d-%d", n, i)
			c, why := Choose(of, aPod("db", name, "x"), zNode, eni.IPv4, k)
			if why.Cause != None {
				return why
			}
			ended := Next(c, Facts{Pod: PodFacts{Presence: Absent}}, now).Claim
			if ended.Phase != Free || !k.Claims.Put(ended) {
				t.Fatalf("%+v", ended)
			}
		}
		return Wait{}
	}
	for n := range 2 {
		if why := rollout(n, noon); why.Cause != None {
			t.Fatalf("rollout %d: %+v", n, why)
		}
	}
	if why := rollout(2, noon); why.Cause != NoRoom || !why.Until.Equal(noon.Add(of.TTL)) {
		t.Errorf("the third rollout: %+v", why)
	}
	page, err := os.ReadFile("../../conf/kubernetes/topologies/README.md")
	if err != nil || !strings.Contains(string(page), "Sticky and Fixed are for pods whose names come back.") {
		t.Errorf("the page does not tell: %v", err)
	}
}

package agent

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// stuck is a node with subnets for new ENIs and pods that need one, whose creations are
// answered as refuse tells.
func stuck(t *testing.T, subnets []string, refuse func(w *world, subnet string) error) (*world, *testNode) {
	w, n, _ := withMeddler(t, sim.NodeSpec{Limits: smallENIs}, func(w *world, n *testNode, d *meddled) {
		n.conf.Pool.FirstENI, n.conf.Pool.Scale.Batch = 1, 4
		d.refuseIf(func(method, about string) error {
			if method != "Create" {
				return nil
			}
			return refuse(w, about)
		})
		options := n.options
		n.options = func(o engine.Options) engine.Options {
			o = options(o)
			o.Subnets = subnets
			return o
		}
	})
	for range 4 {
		_ = n.add()
	}
	return w, n
}

var errDown = &driver.Error{Kind: cloud.ErrUnavailable, Detail: "InternalError of that subnet"}

// intents are the tokens of the ENIs that the agent has begun to make.
func (n *testNode) intents(t *testing.T) (tokens []string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	var m memory
	if err := json.Unmarshal(n.memory, &m); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Creates {
		tokens = append(tokens, c.Token)
	}
	return tokens
}

// What the cloud answers so for ever may be about the subnet: an intent that nothing surely
// came of ends.
func TestACreationThatIsUnavailableForEverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, asked := "", 0
		w, n := stuck(t, []string{"subnet-a", "subnet-b"}, func(_ *world, subnet string) error {
			if first = cmp.Or(first, subnet); subnet != first {
				return nil
			}
			asked++
			return errDown
		})
		defer n.stop()
		n.all(t, 20*time.Minute)
		sleep(20 * time.Minute)
		if left := n.intents(t); len(left) > 0 || asked > 40 {
			t.Errorf("after it was asked for %d times there is still the intent %q", asked, left)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// Where there is no other subnet another intent follows: the reason is told all the while, and
// the cloud is asked now and then.
func TestACreationThatIsUnavailableForEverIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, tokens := 0, map[string]bool{}
		_, n := stuck(t, []string{"subnet-a"}, func(*world, string) error { asked++; return errDown })
		defer n.stop()
		sleep(2 * time.Minute)
		for range 30 {
			sleep(time.Minute)
			n.retry()
			if p := n.status().Problem; !strings.Contains(p, errDown.Detail) {
				t.Errorf("the problem is %q", p)
			}
			all := n.intents(t)
			for _, token := range all {
				tokens[token] = true
			}
			if len(all) > 2 { // one for the pods, one to spare
				t.Errorf("there are the intents %q", all)
			}
		}
		if asked > 150 || len(tokens) < 4 {
			t.Errorf("in half an hour it was asked for %d times with %d tokens", asked, len(tokens))
		}
	})
}

// An effect that comes late ends no intent: the token finds the ENI.
func TestACreationWhoseEffectComesLateIsFoundByItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := false
		w, n := stuck(t, []string{"subnet-a"}, func(w *world, _ string) error {
			if begun {
				return errDown
			}
			begun = true
			w.account.FailNext(sim.ActCreate, sim.Fault{Answer: sim.Lost, Later: 90 * time.Second})
			return nil
		})
		defer n.stop()
		n.all(t, 5*time.Minute)
		if made := w.enisWith(func(i sim.Interface) bool { return len(i.Tags) > 0 }); len(made) != 1 {
			t.Errorf("it has made %v", made)
		}
	})
}

package cloudtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/eni"
)

// quarantining is a node that leaves an ENI out of what it shows.
type quarantining struct {
	instance
	hidden string // its ID
}

func (q quarantining) Interfaces(ctx context.Context) ([]cloud.Interface, error) {
	list, err := q.instance.Interfaces(ctx)
	return slices.DeleteFunc(list, func(i cloud.Interface) bool { return i.ID == q.hidden }), err
}

// Quarantined tells of what is not to be deleted, too: an ENI that is not ours, and an
// address.
func (q quarantining) Quarantined() []cloud.Quarantined {
	own := q.nodes["n1"][0]
	return []cloud.Quarantined{{ID: own.ID, Why: "its subnet is not known"}, {ID: own.ID, Address: own.Addresses[0], Why: "another ENI has it too"},
		{ID: q.hidden, Why: "its MAC can't be one"}}
}

// What earlier runs left and what a sentence leaves is gone for the next one: ENIs, those
// in quarantine too, and addresses of the node's own ENI, but those that it came with.
func TestAnEndpointFromTheEnvironmentIsCleanedUp(t *testing.T) {
	t.Setenv("CLOUD_LAG", "0s")
	t.Setenv("CLOUD_LACKS", "quotas,refusal of what is attached")
	node := instance{newMadeUp(likeness{enis: 4, pods: madeUpSubnet}), "n1"}
	own := node.nodes["n1"][0]
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	had, err := node.AssignAddresses(t.Context(), own.ID, eni.IPv4, 2)
	must(t, err)
	_, err = node.CreateInterface(t.Context(), cloud.Create{Token: "shown", Subnet: "the-subnet", V4: 1})
	must(t, err)
	hidden, err := node.CreateInterface(t.Context(), cloud.Create{Token: "hidden", Subnet: "the-subnet", V4: 1})
	must(t, err)
	t.Run("sentence", func(t *testing.T) {
		s := cloudtest.FromEnvironment(t, cloudtest.Subject{Cloud: quarantining{node, hidden.ID}})
		if want := []cloudtest.Capability{cloudtest.Quotas, cloudtest.Attached}; !slices.Equal(s.Lacks, want) || s.Lag != 0 {
			t.Errorf("it lacks %q and lags %v, want %q and nothing", s.Lacks, s.Lag, want)
		}
		if got := node.nodes["n1"]; len(got) != 1 {
			t.Errorf("the sentence begins with %d ENIs, want the node's own", len(got))
		}
		_, err := node.AssignAddresses(t.Context(), own.ID, eni.IPv4, 3)
		must(t, err)
		_, err = node.CreateInterface(t.Context(), cloud.Create{Token: "left", Subnet: "the-subnet", V4: 1})
		must(t, err)
	})
	if got := node.nodes["n1"]; len(got) != 1 || !slices.Equal(got[0].Addresses, had) {
		t.Errorf("after the sentence the node has %d ENIs, its own has %v, want it alone with %v", len(got), own.Addresses, had)
	}
}

func TestFlag(t *testing.T) {
	for text, want := range map[string]bool{"": false, "0": false, "1": true, "true": true} {
		t.Setenv("CLOUDTEST_FLAG", text)
		if got := cloudtest.Flag(t, "CLOUDTEST_FLAG"); got != want {
			t.Errorf("Flag of %q is %v", text, got)
		}
	}
}

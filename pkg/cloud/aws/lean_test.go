package aws

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

const describeENIs = "DescribeNetworkInterfaces"

// requests returns what a call asks EC2 for.
func (s *site) requests(t *testing.T, call func() error) map[string]int {
	t.Helper()
	before := maps.Clone(s.Calls())
	must(t, call())
	n := maps.Clone(s.Calls())
	for action := range n {
		n[action] -= before[action]
	}
	maps.DeleteFunc(n, func(action string, count int) bool { return count == 0 || action == "Metadata" })
	return n
}

func (s *site) asks(t *testing.T, what string, want map[string]int, call func() error) {
	t.Helper()
	if diff := cmp.Diff(want, s.requests(t, call)); diff != "" {
		t.Errorf("%s (-want +asked):\n%s", what, diff)
	}
}

// lean is a client that has looked once.
func lean(t *testing.T) (*site, *node, func() error) {
	t.Helper()
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{})
	look := func() error { _, err := c.Interfaces(t.Context()); return err }
	must(t, look())
	_, err := c.Limits(t.Context())
	must(t, err)
	return s, c, look
}

func TestWhatIsKnownIsNotAskedForBeforeAChange(t *testing.T) {
	s, c, look := lean(t)
	c.clock.Set(time.Minute) // what an earlier process did has shown by then
	made := map[string]int{"CreateNetworkInterface": 1, "AttachNetworkInterface": 1, describeENIs: 1, "ModifyNetworkInterfaceAttribute": 1}
	var i cloud.Interface
	for n, token := range []string{"a", "b", "c"} {
		s.asks(t, "a new ENI", made, func() (err error) {
			i, err = c.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "subnet-a", V4: 2})
			return err
		})
		if i.Index != n+1 {
			t.Errorf("ENI %d has device index %d", n+1, i.Index)
		}
	}
	s.asks(t, "the same again", map[string]int{describeENIs: 2, "ModifyNetworkInterfaceAttribute": 1}, func() error {
		_, err := c.CreateInterface(t.Context(), cloud.Create{Token: "c", Subnet: "subnet-a", V4: 2})
		return err
	})
	for _, first := range []bool{true, false} {
		s.asks(t, "more addresses", map[string]int{"AssignPrivateIpAddresses": 1}, func() error {
			got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1)
			i.Addresses = append(i.Addresses, got...)
			return err
		})
		s.asks(t, "fewer addresses", map[string]int{"UnassignPrivateIpAddresses": 1}, func() error {
			last := len(i.Addresses) - 1
			gone := i.Addresses[last:]
			i.Addresses = i.Addresses[:last]
			return c.UnassignAddresses(t.Context(), i.ID, gone)
		})
		if first {
			must(t, look())
		}
	}
	s.asks(t, "an address that is not known", map[string]int{describeENIs: 1}, func() error {
		return c.UnassignAddresses(t.Context(), i.ID, addrs("10.0.3.200"))
	})
	must(t, s.Check())
}

func TestWhatIsKnownForLongIsAskedForAgain(t *testing.T) {
	s, c, _ := lean(t)
	var i cloud.Interface
	must(t, func() (err error) {
		i, err = c.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "subnet-a", V4: 2})
		return err
	}())
	c.clock.Set(8*time.Minute + time.Second)
	s.asks(t, "more addresses", map[string]int{describeENIs: 1, "AssignPrivateIpAddresses": 1}, func() error {
		_, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1)
		return err
	})
	want := map[string]int{describeENIs: 3, "CreateNetworkInterface": 1, "AttachNetworkInterface": 1, "ModifyNetworkInterfaceAttribute": 1}
	s.asks(t, "a new ENI", want, func() error {
		_, err := c.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "subnet-a", V4: 2})
		return err
	})
}

func TestENIsThatAreAttachedNowhereAreAskedForWhereThereMayBeAny(t *testing.T) {
	s, c, look := lean(t)
	asks := func(what string, n int) {
		t.Helper()
		s.asks(t, what, map[string]int{describeENIs: n}, look)
	}
	asks("a second look", 1)
	request := cloud.Create{Token: "a", Subnet: "subnet-a", V4: 2}
	i, err := c.CreateInterface(t.Context(), request)
	must(t, err)
	asks("with an ENI of the node's", 1)
	must(t, s.detach(i.ID))
	asks("when it is missing", 2)
	asks("while it is attached nowhere", 2)
	must(t, c.DeleteInterface(t.Context(), i.ID))
	asks("when it is deleted", 1)
	s.Endpoint.FailNext("CreateNetworkInterface", sim.Fault{Answer: sim.Lost})
	request.Token = "b"
	if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
		t.Fatal(err)
	}
	asks("after a creation of unknown outcome", 2)
	last, err := c.CreateInterface(t.Context(), request)
	must(t, err)
	asks("as long as something may come late", 2)
	c.clock.Set(2 * time.Minute)
	asks("when it must have come", 2)
	asks("after that", 1)
	c.clock.Set(123 * time.Minute)
	asks("now and then", 2)
	asks("and not each time", 1)
	s.Endpoint.FailNext("DeleteNetworkInterface", sim.Fault{Answer: sim.Lost})
	if err := c.DeleteInterface(t.Context(), last.ID); !errors.Is(err, cloud.ErrUnknown) {
		t.Fatal(err)
	}
	c.clock.Set(127 * time.Minute)
	asks("when nobody looked while something was in doubt", 2)
}

func TestADeviceIndexThatIsTakenUnawaresIsFoundOut(t *testing.T) {
	s, c, _ := lean(t)
	must(t, s.Update(func(tx *sim.Tx) error {
		n, err := tx.Create(sim.Create{Subnet: "subnet-a"})
		if err == nil {
			_, err = tx.Attach(sim.Attach{Interface: n.ID, Instance: "i-1", Index: 1})
		}
		return err
	}))
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "subnet-a", V4: 2})
	if err != nil || i.Index != 2 {
		t.Errorf("%+v, %v", i, err)
	}
}

// What an earlier process made just before this one began to look, EC2 finds by the
// client token.
func TestAnENIThatDidNotShowWhenTheProcessBeganIsNotMadeTwice(t *testing.T) {
	s, c, _ := lean(t)
	before, _ := s.open(t, "i-1", engine.Options{})
	request := cloud.Create{Token: "a", Subnet: "subnet-a", V4: 2}
	first, err := before.CreateInterface(t.Context(), request)
	must(t, err)
	i, err := c.CreateInterface(t.Context(), request)
	if err != nil || i.ID != first.ID {
		t.Errorf("%+v, %v; want %s", i, err, first.ID)
	}
	must(t, s.Check())
}

func TestACreationThatWasThrottledAtItsBeginningIsAsGoodAsNew(t *testing.T) {
	s, c, _ := lean(t)
	c.clock.Set(time.Minute) // what an earlier process did has shown by then
	s.Endpoint.FailNext("CreateNetworkInterface", sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
	request := cloud.Create{Token: "a", Subnet: "subnet-a", V4: 2}
	want := map[string]int{"CreateNetworkInterface": 2, "AttachNetworkInterface": 1, describeENIs: 1, "ModifyNetworkInterfaceAttribute": 1}
	s.asks(t, "both tries", want, func() error {
		if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrThrottled) {
			t.Fatal(err)
		}
		_, err := c.CreateInterface(t.Context(), request)
		return err
	})
}

func TestThrottledStepsOfACreationAreMadeAgain(t *testing.T) {
	s, c, _ := lean(t)
	for action, times := range map[string]int{"AttachNetworkInterface": 3, describeENIs: 2 * readTries, "ModifyNetworkInterfaceAttribute": 3} {
		for range times {
			s.Endpoint.FailNext(action, sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
		}
	}
	want := map[string]int{"CreateNetworkInterface": 1, "AttachNetworkInterface": 4, describeENIs: 2*readTries + 1, "ModifyNetworkInterfaceAttribute": 4}
	s.asks(t, "a creation", want, func() error {
		i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "subnet-a", V4: 2})
		if err == nil && i.Index != 1 {
			t.Errorf("%+v", i)
		}
		return err
	})
}

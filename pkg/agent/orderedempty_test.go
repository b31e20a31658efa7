package agent

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// makeFor makes an ENI for a topology, with one address that is kept for its first pod.
func (op *testOperator) makeFor(t *testing.T, of string) (made order.ENI, kept order.Reserved) {
	t.Helper()
	is := op.object()
	nic, err := op.cloud.CreateInterface(t.Context(), cloud.Create{Token: order.Token(is.UID, is.Status.Created), Subnet: "subnet-a", V4: 1})
	if err != nil {
		t.Fatal(err)
	}
	made = orderENI(nic)
	made.Topology = of
	kept = order.Reserved{Addr: nic.Addresses[0], Topology: of, Namespace: of, Pod: of + "-0"}
	op.status(func(s *order.Status) {
		*s = op.term.Made(order.View{Spec: op.object().Spec, Status: *s}, op.moment(), is.UID, made)
		s.Reserved, s.Revision = append(slices.Clone(s.Reserved), kept), s.Revision+1
	})
	sleep(time.Minute)
	return made, kept
}

// hasENI tells whether the node's object has an ENI.
func (op *testOperator) hasENI(id string) bool {
	return slices.ContainsFunc(op.object().Status.ENIs, func(e order.ENI) bool { return e.ID == id })
}

func TestAnENIOfATopologyThatIsEmptyGoesBack(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		nic, kept := op.makeFor(t, "db")
		n.is(t, kept.Addr, "reserved db/db-0")
		k := n.claim(t, kept, "a")
		sleep(30 * time.Minute)
		n.del(k)
		sleep(30 * time.Minute)
		if !op.hasENI(nic.ID) {
			t.Fatal("an ENI on which an address is kept is gone")
		}
		op.reserve()
		sleep(emptyFor - time.Minute)
		n.is(t, kept.Addr, "-")
		if !op.hasENI(nic.ID) {
			t.Fatal("it goes too early")
		}
		sleep(3 * time.Minute)
		if op.hasENI(nic.ID) || slices.ContainsFunc(n.cached.ENIs, func(e eni.Interface) bool { return e.ID == nic.ID }) {
			t.Errorf("it is there: %+v", op.object())
		}
		n.fillWith(t, 20)
		n.must(t)
		n.noCalls(t)
	})
}

// An address comes to the ENI after its agent has said that it may go, and before the operator has accepted that: it stays, and the pod has it.
func TestAnENIThatIsNeededAgainStays(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		nic, _ := op.makeFor(t, "db")
		op.reserve()
		sleep(time.Minute)
		op.set(func(op *testOperator) { op.away = true })
		sleep(emptyFor)
		if going := op.object().Spec.ReleaseInterfaces; !slices.Equal(going, []string{nic.ID}) {
			t.Fatalf("%v may go", going)
		}
		addrs, err := op.cloud.AssignAddresses(t.Context(), nic.ID, eni.IPv4, 1)
		if err != nil {
			t.Fatal(err)
		}
		kept := order.Reserved{Addr: addrs[0], Topology: "db", Namespace: "db", Pod: "db-1"}
		op.status(func(s *order.Status) {
			*s = op.term.Assigned(order.View{Spec: op.object().Spec, Status: *s}, op.moment(), nic.ID, hostPrefixes(addrs)...)
			s.Reserved, s.Revision = []order.Reserved{kept}, s.Revision+1
		})
		op.set(func(op *testOperator) { op.away = false })
		sleep(time.Minute)
		n.is(t, kept.Addr, "reserved db/db-1")
		n.claim(t, kept, "b")
		sleep(time.Hour)
		if !op.hasENI(nic.ID) || len(op.object().Spec.ReleaseInterfaces) > 0 {
			t.Errorf("%+v", op.object())
		}
		n.must(t)
		n.noCalls(t)
	})
}

func TestWhichENIsOfTopologiesAreEmpty(t *testing.T) {
	at := netip.MustParseAddr
	empty := order.ENI{ID: "eni-1", Index: 1, State: order.Attached, Topology: "db", V4: eni.Net{Primary: netip.MustParsePrefix("10.0.4.9/22")}}
	change := func(do func(*order.ENI)) order.ENI {
		e := empty
		do(&e)
		return e
	}
	elsewhere := order.ENI{ID: "eni-0", State: order.Attached, Addresses: hostPrefixes([]netip.Addr{at("10.0.4.77")})}
	for name, tt := range map[string]struct {
		nic      order.ENI
		reserved string
		lines    []eni.Address
		want     bool
	}{
		"nothing":                         {empty, "", nil, true},
		"one of the pool":                 {change(func(e *order.ENI) { e.Topology = "" }), "", nil, false},
		"one that is attached no more":    {change(func(e *order.ENI) { e.State = order.Detached }), "", nil, false},
		"the node's own":                  {change(func(e *order.ENI) { e.Index = 0 }), "", nil, false},
		"an address":                      {change(func(e *order.ENI) { e.Addresses = hostPrefixes([]netip.Addr{at("10.0.4.10")}) }), "", nil, false},
		"one that is on its way":          {empty, "10.0.4.10", nil, false},
		"one on its way elsewhere":        {empty, "10.9.4.10", nil, true},
		"one that is there elsewhere":     {empty, "10.0.4.77", nil, true},
		"what a pod has lost":             {empty, "", []eni.Address{{Addr: at("10.0.4.10"), ENI: 1, State: eni.Used, Lost: true}}, false},
		"what a pod has of another's ENI": {empty, "", []eni.Address{{Addr: at("10.0.4.10"), ENI: 0, State: eni.Used}}, true},
	} {
		s := order.Status{ENIs: []order.ENI{elsewhere, tt.nic}}
		if tt.reserved != "" {
			s.Reserved = []order.Reserved{{Addr: at(tt.reserved), Topology: "db"}}
		}
		cached := &ipam.State{ENIs: []eni.Interface{{ID: "eni-0"}, {ID: "eni-1", Index: 1, V4: empty.V4}}, Addresses: tt.lines}
		if got := isEmpty(tt.nic, s, cached); got != tt.want {
			t.Errorf("%s: empty %v", name, got)
		}
	}
}

// On a node whose agent calls the cloud the ENI of a topology is not the pool's: what it brings goes back, and so does the ENI, though the agent
// starts anew, without its memory too, and pods wait for more than the others carry.
func TestTheENIOfATopologyIsNoneOfThePoolOfANodeThatCallsItself(t *testing.T) {
	for _, boots := range []bool{false, true} {
		operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
			nic, kept := op.makeFor(t, "db")
			if _, err := op.cloud.AssignAddresses(t.Context(), nic.ID, eni.IPv4, 3); err != nil { // by an operator that has ended
				t.Fatal(err)
			}
			k := n.claim(t, kept, "a")
			n.stop()
			if boots {
				n.reboot()
			}
			n.callsBy(agentconf.Sim)
			n.start(-1, false)
			defer n.stop()
			sleep(5 * time.Minute)
			n.addAndRetry(60)
			for range 10 {
				sleep(time.Minute)
				n.retry()
				for _, line := range n.lines() {
					if line.Owner.Pod != kept.Pod && slices.ContainsFunc(n.cached.ENIs, func(e eni.Interface) bool { return e.ID == nic.ID && e.Index == line.ENI }) {
						t.Errorf("%s is a general pod's", line.Addr)
					}
				}
			}
			if !boots {
				n.is(t, kept.Addr, "claimed db/db-0")
				n.del(k)
			}
			for _, k := range n.keys() {
				n.del(k)
			}
			sleep(time.Hour)
			if list, err := op.cloud.Interfaces(t.Context()); err != nil || slices.ContainsFunc(list, func(is cloud.Interface) bool { return is.ID == nic.ID }) {
				t.Errorf("it is there, and %v", err)
			}
			n.must(t)
		})
	}
}

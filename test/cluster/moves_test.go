package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"k8s.io/apimachinery/pkg/types"
)

// move is an address on its way to another node.
type move struct {
	*database
	pod      string
	addr     netip.Addr
	from, to *node
	was      types.UID // of the pod that has ended
}

// begin ends a pod of the database, and lets the next one of its name have no place but the other node.
func (db *database) begin(pod string) move {
	db.t.Helper()
	p := db.named(pod)
	m := move{database: db, pod: pod, addr: p.address(), was: p.UID}
	for _, n := range db.nodes {
		if n.Name == p.Spec.NodeName {
			m.from = n
		} else {
			m.to = n
		}
	}
	db.Kubectl("cordon", m.from.Name)
	db.Kubectl("delete", "pod", pod, "--wait=false")
	return m
}

// end waits until the next pod has the address, and all see it.
func (m move) end() {
	m.t.Helper()
	m.Eventually("pod "+m.pod+" has another node", func() error {
		if !m.isBound() {
			return fmt.Errorf("it is %+v", m.named(m.pod))
		}
		return nil
	}, m.warnings)
	m.serves(m.nodes...)
	m.Kubectl("uncordon", m.from.Name)
	if on := m.named(m.pod).Spec.NodeName; on != m.to.Name {
		m.t.Errorf("pod %s is on node %s, want %s", m.pod, on, m.to.Name)
	}
}

// isBound tells whether the next pod has its node.
func (m move) isBound() bool {
	p := m.named(m.pod)
	return p != nil && p.UID != m.was && p.Spec.NodeName != ""
}

// isKept tells whether the node that had the address still keeps it for a pod.
func (m move) isKept() bool {
	return slices.ContainsFunc(m.from.network().Status.Reserved, func(r crd.Reserved) bool { return r.Address == m.addr.String() })
}

// isOn tells whether the cloud has the address on the node, on none if that is nil.
func (m move) isOn(n *node) bool {
	on := m.carriersOf(m.addr)
	return n == nil && len(on) == 0 || n != nil && slices.Equal(on, []string{n.Name})
}

func (m move) claim() (is crd.AddressClaim) {
	m.t.Helper()
	m.must(m.Get("/apis/enipool.io/v1alpha1/addressclaims/"+m.addr.String(), &is))
	return is
}

// moment is one of a move.
type moment struct {
	what string
	hold string // the calls that the cloud refuses for now, so that it lasts; "" where nothing holds it
	is   func(move) bool
}

// moments are those between which the operator writes or calls.
var moments = []moment{
	{"before its node is told", "", func(m move) bool { return m.isBound() && m.isKept() && m.isOn(m.from) }},
	{"before it is unassigned", sim.ActUnassign, func(m move) bool { return m.isBound() && !m.isKept() && m.isOn(m.from) }},
	{"before it is assigned", sim.ActAssign, func(m move) bool { return m.isOn(nil) }},
	{"before its claim is Bound", "", func(m move) bool { return m.isOn(m.to) && m.claim().Status.Phase != "Bound" }},
}

// movesWhileOperatorsAreKilled moves one pod after the other. In each move the operator that leads is killed, each time at another moment; who leads next
// goes on.
func (db *database) movesWhileOperatorsAreKilled() {
	db.t.Helper()
	for i, at := range moments {
		pod, tries := fmt.Sprint("db-", i%3), 1
		for ; !db.killsAt(at, pod); tries++ {
			if tries == mostTries {
				db.t.Fatalf("no operator was killed %s: it was over each time", at.what)
			}
		}
	}
}

// mostTries is how often a moment may be missed that nothing holds.
const mostTries = 4

// killsAt moves a pod, and kills the leader at the moment. It returns false if that was over before the leader was dead.
func (db *database) killsAt(at moment, pod string) (met bool) {
	db.t.Helper()
	leader := db.leader()
	if at.hold != "" {
		db.vpc.Account.SetFaults(sim.Chance{Action: at.hold, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Throttled}}})
	}
	m := db.begin(pod)
	db.Eventually(pod+" moves", func() error {
		if met = at.is(m); met || m.isOver() {
			return nil
		}
		return errors.New(m.addr.String() + " is not yet " + at.what)
	}, db.warnings, db.claims)
	if met {
		leader.endOperator()
		met = at.is(m)
	}
	db.vpc.Account.SetFaults()
	m.end()
	db.t.Logf("%s of pod %s moved from %s to %s; the operator of %s was killed %s: %t", m.addr, pod, m.from.Name, m.to.Name, leader.Name, at.what, met)
	return met
}

// isOver tells whether the next pod has the address.
func (m move) isOver() bool {
	is := m.claim().Status
	return is.Phase == "Bound" && is.Node == m.to.Name
}

// endOperator ends the node's operator as a kernel short of memory does.
func (n *node) endOperator() { n.Run("sh", "-c", "kill -9 $(pidof enipool-operator)") }

// away is for how long the API server gives no answers: the leader's time runs out meanwhile.
const away = 20 * time.Second

// movesWithoutTheAPIServer lets the API server hang while an address moves. Nodes and pods go on as they are.
func (db *database) movesWithoutTheAPIServer(beside []sighting) {
	db.t.Helper()
	m := db.begin("db-1")
	db.Eventually("the address moves", func() error {
		if phase := m.claim().Status.Phase; phase != "Moving" {
			return fmt.Errorf("the claim is %s", phase)
		}
		return nil
	}, db.claims)
	db.APIServer.Pause()
	for gone := time.Now(); time.Since(gone) < away; time.Sleep(time.Second) {
		for _, n := range db.nodes {
			for _, p := range beside {
				if err := n.answers(p); err != nil {
					db.t.Errorf("%s after the API server went: %v", time.Since(gone).Round(time.Second), err)
				}
			}
		}
	}
	db.APIServer.Resume()
	m.end()
}

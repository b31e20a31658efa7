package claims_test

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	"k8s.io/apimachinery/pkg/types"
)

var quietSeed = flag.Uint64("claims.quietseed", 0, "replay this seed of the comparison of decisions alone; 0 runs seeds from 1 on")

// By what has changed since the last decision the same follows as by everything, whatever has changed: here nodes, claims and pods are as in no cluster, with
// addresses of both families, and mostly what was decided is done, so that claims become quiet. The histories of pods compare each of their decisions too.
func TestWhatHasChangedDecidesAsMuchAsAll(t *testing.T) {
	sum := claims.Checked{}
	from, to := uint64(1), uint64(100)
	if *quietSeed != 0 {
		from, to = *quietSeed, *quietSeed
	} else if testing.Short() {
		to = 30
	}
	for seed := from; seed <= to; seed++ {
		w := newJumble(seed)
		for step := range 300 {
			w.change()
			steps, bad := w.Decide(w.known, w.now, w.settled)
			if bad != "" {
				t.Fatalf("seed %d, step %d: %s\nreplay with: go test ./pkg/operator/claims -run DecidesAsMuch -claims.quietseed %d", seed, step, bad, seed)
			}
			if w.IntN(4) > 0 {
				w.obey(steps)
			}
		}
		sum.Quiet, sum.Busy = sum.Quiet+w.Quiet, sum.Busy+w.Busy
	}
	if sum.Quiet == 0 || sum.Busy == 0 {
		t.Errorf("of all claims %d were quiet, and %d were not", sum.Quiet, sum.Busy)
	}
	t.Logf("%d times a claim was quiet, and %d times it was not", sum.Quiet, sum.Busy)
}

// change has anything happen, or nothing.
func (w *jumble) change() {
	passes := []time.Duration{0, 200 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Minute}[w.IntN(6)]
	w.now, w.mono = w.now.Add(passes), w.mono+passes
	list := []func(){w.changePod, w.changePod, w.changeClaim, w.changeNode, w.changeMemory, w.changeMoves, w.changeAll}
	if do := w.IntN(3 * len(list)); do < len(list) {
		list[do]()
	}
}

func (w *jumble) changePod() {
	of := name{Namespace: "ns", Name: fmt.Sprint("pod-", w.IntN(jumblePods))}
	p, is := w.pods[of]
	switch w.IntN(6) {
	case 0, 1:
		kind := w.IntN(len(jumbleKinds))
		p = claims.Pod{Name: of, UID: fmt.Sprint("uid-", w.next()), Topology: fmt.Sprint("kind-", kind), Node: fmt.Sprint("node-", w.IntN(jumbleNodes))}
		if kind == 1 {
			p.StatefulSet = topology.Workload{Name: "db", UID: "set"}
		}
		if w.IntN(5) == 0 {
			p.Node = ""
		}
		w.setPod(p)
	case 2:
		if delete(w.pods, of); is {
			w.take(claims.Event{Pod: &p, Deleted: true})
		}
	case 3:
		if p.Ended = true; is {
			w.setPod(p)
		}
	case 4:
		if p.V4, _ = w.anyAddr(); is && p.V4.Is4() {
			w.setPod(p)
		}
	case 5:
		if delete(w.pods, of); is && w.IntN(2) == 0 { // the list is the first to tell
			p.UID, p.Node = fmt.Sprint("uid-", w.next()), fmt.Sprint("node-", w.IntN(jumbleNodes))
			w.pods[of] = p
		}
		list := slices.Collect(maps.Values(w.pods))
		w.take(claims.Event{Pods: &list})
	}
}

func (w *jumble) changeClaim() {
	at, kind := w.anyAddr()
	old := w.objects[at]
	switch luck := w.IntN(6); {
	case old == nil:
		of := &crd.Workload{Kind: "StatefulSet", Name: "db", UID: "set"}
		keep := crd.ClaimSpec{Topology: fmt.Sprint("kind-", kind), Subnet: jumbleSubnet(kind), Address: at.String(), Namespace: "ns", Pod: fmt.Sprint("pod-", w.IntN(jumblePods)), Keep: "Workload", Workload: of}
		if kind == 0 {
			keep.Keep, keep.TTL, keep.Workload = "TTL", "1m", nil
		}
		c := &crd.AddressClaim{Spec: keep}
		c.Name, c.UID = at.String(), types.UID(fmt.Sprint(w.next()))
		w.takeClaim(c)
	case luck == 0:
		w.deleteClaim(at)
	case luck == 1:
		w.dropClaim(at)
	default:
		next := old.DeepCopy()
		switch luck {
		case 2:
			next.Status.Phase = []string{"Free", "Moving", "Bound", "Releasing", "Conflict", "Later"}[w.IntN(6)]
		case 3:
			next.Status.Message = []string{"", "something"}[w.IntN(2)]
		case 4:
			next.Spec.Pod = fmt.Sprint("pod-", w.IntN(jumblePods))
		case 5:
			next.Status.To, next.Status.ToInterface = "node-0", "node-0/a"
		}
		w.takeClaim(next)
	}
}

func (w *jumble) changeNode() {
	i := w.IntN(jumbleNodes)
	n, is := w.nodes[fmt.Sprint("node-", i)]
	at, _ := w.anyAddr()
	if !is {
		w.setNode(w.newNode(i))
		return
	}
	n.Releasing, n.Published, n.Quarantined, n.ENIs = maps.Clone(n.Releasing), maps.Clone(n.Published), maps.Clone(n.Quarantined), slices.Clone(n.ENIs)
	if n.Releasing == nil {
		n.Releasing, n.Published = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	}
	if n.Quarantined == nil {
		n.Quarantined = map[netip.Addr]bool{}
	}
	e := w.IntN(max(1, len(n.ENIs)))
	switch w.IntN(11) {
	case 0:
		n.Told = !n.Told
	case 1:
		n.Serves = !n.Serves
	case 2:
		n.Gone = !n.Gone
	case 3:
		n.Releasing[at], n.Published[at] = !n.Releasing[at], w.IntN(2) == 0
	case 4:
		n.Quarantined = map[netip.Addr]bool{at: w.IntN(2) == 0}
	case 5:
		n.Open = map[netip.Addr]bool{at: true}
		w.known.SetOpen(n.Name, n.Open)
		w.nodes[n.Name] = n
		return
	case 6:
		n.Open, n.Quarantined = nil, nil
	case 7:
		n.ENIs[e].Addresses = append(slices.Clone(n.ENIs[e].Addresses), at)
	case 8:
		n.ENIs[e].Addresses = slices.DeleteFunc(slices.Clone(n.ENIs[e].Addresses), func(netip.Addr) bool { return w.IntN(3) == 0 })
	case 9:
		delete(w.nodes, n.Name)
		w.known.DropNode(n.Name)
		return
	case 10:
		n.MayMake, n.Full, n.Yields = false, true, map[string]int{"a": w.IntN(3), "b": w.IntN(3)}
		n.Reserved = slices.DeleteFunc(slices.Clone(n.Reserved), func(order.Reserved) bool { return w.IntN(3) == 0 })
	}
	w.setNode(n)
}

func (w *jumble) changeMemory() {
	at, kind := w.anyAddr()
	switch w.IntN(7) {
	case 0:
		w.known.NoteRefused(at, w.now, []string{"", "not here"}[w.IntN(2)])
	case 1:
		w.known.NoteSought(at, w.IntN(2) == 0)
	case 2:
		w.known.NoteLeft(at, claims.Left{ENI: "eni-left", Instance: "i-left"})
	case 3:
		w.known.NoteLeft(at, claims.Left{})
	case 4:
		c := topology.Claim{Addr: at, Topology: fmt.Sprint("kind-", kind), Subnet: jumbleSubnet(kind), Namespace: "ns", Pod: fmt.Sprint("pod-", w.IntN(jumblePods))}
		w.known.NoteCreating(c, w.IntN(2) == 0)
	case 5:
		w.takeSets()
	case 6:
		w.read(name{Namespace: "ns", Name: fmt.Sprint("pod-", w.IntN(jumblePods))})
	}
}

func (w *jumble) changeMoves() {
	at, _ := w.anyAddr()
	switch w.IntN(4) {
	case 0:
		m := claims.Moves{Now: w.mono, Described: max(0, w.mono-time.Minute), Fence: 40 * time.Second}
		if w.IntN(2) == 0 {
			m.Reserved = map[string][]netip.Prefix{"a": nil}
		}
		w.known.SetMoves(m)
	case 1:
		w.known.NoteMoving([]netip.Addr{at})
	case 2:
		w.known.NoteMoved([]netip.Addr{at}, func(netip.Addr) bool { return w.IntN(2) == 0 }, w.mono)
	case 3:
		w.known.NoteUnmovable(at, w.mono)
	}
}

func (w *jumble) changeAll() {
	switch w.IntN(4) {
	case 0:
		w.settled = !w.settled
	case 1:
		w.known.SetSubnets(w.subnets())
	default:
		w.takeKind(w.IntN(len(jumbleKinds)), w.IntN(3) == 0)
	}
}

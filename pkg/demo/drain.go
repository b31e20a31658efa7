package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// The end of the burst: with two pods on its primary ENI a node needs one batch.
const (
	stayPods  = 2
	drainTime = 90 * time.Second // more than a node needs
)

// drain deletes most pods and waits until the agents have released what the others don't need.
func (d *demo) drain(ctx context.Context) error {
	by, other := d.nodes[0], d.nodes[1]
	d.title("All pods leave but %d a node; %s's pool shrinks when nothing has needed it for %s, %s's at once", stayPods, by.name, delay, other.name)
	state, err := by.nodeState(ctx)
	if err != nil {
		return err
	}
	times := watchNodes(ctx, d.nodes)
	err = d.detach(ctx, d.podsToDrop())
	for _, n := range d.nodes {
		if err == nil {
			err = d.waitForPool(ctx, n, perENI, drainTime)
		}
	}
	if err = errors.Join(err, times.end()); err != nil {
		return err
	}
	d.say("")
	d.table(times.print)
	if err := d.checkDrained(by, state.ENIs); err != nil {
		return err
	}
	d.say("\n%s has %d addresses on its primary ENI again; the others went newest first.", by.name, perENI)
	d.say("%s released what had cooled down, batch by batch and without waiting; where that was on older ENIs, newer ones are left.", other.name)
	return d.listENIs(ctx)
}

// podsToDrop are all pods but the first of each node's primary ENI.
func (d *demo) podsToDrop() []*pod {
	stay := map[*labNode]int{}
	return slices.DeleteFunc(slices.Clone(d.pods), func(p *pod) bool {
		if p.index > 0 || stay[p.on] == stayPods {
			return false
		}
		stay[p.on]++
		return true
	})
}

// checkDrained checks that the node has nothing but its primary ENI, in the cloud too, and
// that its agent deleted the others from the newest on.
func (d *demo) checkDrained(n *labNode, had []eni.Interface) error {
	if list := d.vpc.Account.Snapshot().Nodes[n.name]; len(list) != 1 || len(list[0].Addresses) != perENI {
		return fmt.Errorf("the cloud shows %v for %s, want its primary ENI alone with %d addresses", eniNames(list), n.name, perENI)
	}
	var order, want []string
	for _, e := range n.agent.entriesOf("delete") {
		if id := e.fieldText("eni"); !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	for _, nic := range slices.Backward(had[1:]) {
		want = append(want, nic.ID)
	}
	if !slices.Equal(order, want) {
		return fmt.Errorf("%s deleted its ENIs in the order %v, want the newest first, %v", n.name, order, want)
	}
	return nil
}

package history

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// node is a pool that keeps the rules: each call has all of its effect at one moment.
type node struct {
	random *rand.Rand
	now    time.Duration
	owners map[netip.Addr]string
	freed  map[netip.Addr]time.Duration
}

// around gives the call a begin and an end of which one moment is between.
func (n *node) around(c Call) Call {
	c.Begin = n.now - time.Duration(n.random.IntN(int(30*time.Millisecond)))
	c.End = n.now + time.Duration(n.random.IntN(int(30*time.Millisecond)))
	if c.Outcome = Done; n.random.IntN(4) == 0 {
		c.Outcome, c.Addr = Unknown, netip.Addr{}
	}
	return c
}

func (n *node) ofPod(pod string) (netip.Addr, bool) {
	for addr, owner := range n.owners {
		if owner == pod {
			return addr, true
		}
	}
	return netip.Addr{}, false
}

func (n *node) add(pod string) Call {
	c := Call{Kind: Add, Pods: []string{pod}}
	if _, has := n.ofPod(pod); has {
		c = n.around(c)
		c.Outcome = Refused
		return c
	}
	for _, addr := range []netip.Addr{one, two, two.Next()} {
		freed, given := n.freed[addr]
		if n.owners[addr] == "" && (!given || n.now-freed >= coolDown) {
			n.owners[addr], c.Addr = pod, addr
			return n.around(c)
		}
	}
	c = n.around(c)
	c.Outcome = Unknown // it failed
	return c
}

func (n *node) free(kind Kind, pods ...string) Call {
	for _, pod := range pods {
		if addr, has := n.ofPod(pod); has {
			delete(n.owners, addr)
			n.freed[addr] = n.now
		}
	}
	return n.around(Call{Kind: kind, Pods: pods})
}

func (n *node) look() Call {
	c := n.around(Call{Kind: Look})
	c.Outcome, c.Owners = Done, map[netip.Addr]string{}
	for addr, owner := range n.owners {
		c.Owners[addr] = owner
	}
	return c
}

// A node that keeps the rules is never blamed, whenever its calls begin and end around what
// they do, and whatever is known of them. Told of a longer cool-down than it keeps, some are.
func TestANodeThatKeepsTheRulesIsNeverBlamed(t *testing.T) {
	blamed := 0
	for seed := range uint64(300) {
		n := &node{random: rand.New(rand.NewPCG(seed, 0)), now: time.Second, owners: map[netip.Addr]string{}, freed: map[netip.Addr]time.Duration{}}
		var calls []Call
		for range 60 {
			n.now += time.Duration(n.random.IntN(int(20 * time.Millisecond)))
			pod := fmt.Sprintf("p%d", n.random.IntN(5))
			switch n.random.IntN(8) {
			case 0, 1, 2:
				calls = append(calls, n.add(pod))
			case 3:
				calls = append(calls, n.free(Del, pod))
			case 4:
				calls = append(calls, n.free(GC, pod, fmt.Sprintf("p%d", n.random.IntN(5))))
			case 5:
				calls = append(calls, n.free(Death, pod))
			default:
				calls = append(calls, n.look())
			}
		}
		slices.SortFunc(calls, func(a, b Call) int { return int(a.End - b.End) })
		if err := Check(calls, coolDown); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if Check(calls, 3*coolDown) != nil {
			blamed++
		}
	}
	if blamed == 0 {
		t.Error("no history shows for how long addresses rest")
	}
}

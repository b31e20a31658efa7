package agent

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"pgregory.net/rapid"
)

// anySituation draws what may be known of a node with that cache.
func anySituation(t *rapid.T, cached *ipam.State) situation {
	v := anyView(t, cached, time.Minute)
	v.limits = eni.Limits{ENIs: 4, V4: 9}
	v.subnets = []cloud.Subnet{{ID: "subnet-a", Free: rapid.IntRange(0, 20).Draw(t, "free"), New: rapid.Bool().Draw(t, "new")}}
	if rapid.Bool().Draw(t, "another ENI") {
		v.enis = append(v.enis, cloud.Interface{ID: "eni-c", Index: 2, Ours: rapid.Bool().Draw(t, "ours"), Token: rapid.SampledFrom([]string{"", "t", "u"}).Draw(t, "token"), Subnet: "subnet-a"})
	}
	k := situation{now: time.Minute, view: v, doubts: noDoubts().sighted(v, cached), backoffs: backoffs{}, desk: &desk{calls: map[object]*call{}},
		mem: &memory{Begun: map[netip.Addr]bool{}, Leaving: map[string]bool{}, Unsure: map[string]time.Duration{}}}
	k.pool.Mode, k.pool.ReturnENIs = pool.Batch, true
	if rapid.Bool().Draw(t, "a call on a") {
		k.desk.calls[eniKey("eni-a")] = &call{op: rapid.SampledFrom([]string{"AssignAddresses", "UnassignAddresses"}).Draw(t, "op"), family: eni.IPv4, count: 3}
	}
	if rapid.Bool().Draw(t, "an intent") {
		k.mem.Creates = []create{{Token: "t", Subnet: "subnet-a", Slots: 4}}
	}
	if rapid.Bool().Draw(t, "b leaves") {
		k.mem.Leaving["eni-b"] = true
	}
	for _, line := range cached.Addresses {
		if line.State == eni.Releasing && rapid.Bool().Draw(t, "begun") {
			k.mem.Begun[line.Addr] = true
		}
	}
	k.pressed, k.exhausted = rapid.Bool().Draw(t, "pressed"), rapid.Bool().Draw(t, "exhausted")
	return k
}

// Each address of the cache is in the snapshot once, on its ENI; what is not surely there, or may be on its way
// back, can't be taken back or given to pods; an ENI with a call, or that is not seen, is left alone; and
// ENIs that are still to come are counted once.
func TestASnapshotHasAllOfTheCacheOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cached := anyCache(t)
		k := anySituation(t, cached)
		s := k.snapshot(cached)
		k.fill(&s, cached)
		n := 0
		for i, e := range s.ENIs {
			if e.ID != cached.ENIs[i].ID {
				t.Fatalf("ENI %d is %s, want %s", i, e.ID, cached.ENIs[i].ID)
			}
			have, shown := k.view.eni(e.ID)
			if (!shown || have.Index < 0 || k.desk.isOn(e.ID)) && !e.Busy {
				t.Fatalf("%s may be touched: shown %t as %+v, calls %v", e.ID, shown, have, k.desk.calls)
			}
			for _, a := range e.Addresses {
				n++
				if a.ENI != e.Index {
					t.Fatalf("%s of the ENI %d is on %d", a.Addr, a.ENI, e.Index)
				}
				if there := k.view.places()[a.Addr] == e.ID; a.Committed != (!there || k.mem.Begun[a.Addr]) {
					t.Fatalf("%s is committed %t: there %t, begun %t", a.Addr, a.Committed, there, k.mem.Begun[a.Addr])
				}
			}
		}
		if n != len(cached.Addresses) {
			t.Fatalf("%d of %d addresses", n, len(cached.Addresses))
		}
		pending, foreign := len(k.mem.Creates), 0
		if nic, is := k.view.eni("eni-c"); is {
			if nic.Ours && nic.Token != "" && !k.mem.making(nic.Token) {
				pending++
			}
			if !nic.Ours {
				foreign++
			}
		}
		if len(s.Pending) != pending || s.Unmanaged != foreign {
			t.Fatalf("%d to come and %d of others, want %d and %d", len(s.Pending), s.Unmanaged, pending, foreign)
		}
	})
}

// No step touches an ENI that is busy, nor what a pod has; while pods of others wait none is for spare addresses; and the
// same situation gives the same steps.
func TestStepsFollowFromTheSituation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cached := anyCache(t)
		k := anySituation(t, cached)
		needed, target := rapid.IntRange(0, 12).Draw(t, "needed"), rapid.IntRange(0, 12).Draw(t, "target")
		plan := func() ([]pool.Step, []pool.Cause) {
			s := k.snapshot(cached)
			return k.steps(cached, s, present(cached, s), needed, target)
		}
		steps, targetCauses := plan()
		used := map[netip.Addr]bool{}
		for _, line := range cached.Addresses {
			used[line.Addr] = line.State == eni.Used
		}
		busy := map[string]bool{}
		for _, e := range k.snapshot(cached).ENIs {
			busy[e.ID] = e.Busy
		}
		for _, s := range steps {
			if s.Spare && k.pressed {
				t.Fatalf("%v is for spare addresses", s)
			}
			if s.Do == pool.Assign && busy[s.ENI] {
				t.Fatalf("%v: the ENI is busy", s)
			}
			if slices.ContainsFunc(s.Addrs, func(a netip.Addr) bool { return used[a] }) {
				t.Fatalf("%v takes an address from a pod", s)
			}
			if s.Reason == "" {
				t.Fatalf("%+v has no reason", s)
			}
		}
		again, whyAgain := plan()
		same := slices.EqualFunc(steps, again, func(x, y pool.Step) bool {
			return x.Do == y.Do && x.ENI == y.ENI && x.Count == y.Count && slices.Equal(x.Addrs, y.Addrs)
		})
		if !same || !slices.Equal(targetCauses, whyAgain) {
			t.Fatalf("%v, %v\nand then %v, %v", steps, targetCauses, again, whyAgain)
		}
	})
}

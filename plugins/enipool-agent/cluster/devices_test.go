package cluster

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/devices"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// drawnNode is what a node is at one time.
type drawnNode struct {
	conf     pool.Config
	limits   eni.Limits
	families []eni.Family
	state    ipam.State
	capacity int // pods that can have addresses, as the agent tells
}

// drawNode draws a node: prefixes or single addresses, of one family or both, limits of the configuration and ENIs in any state.
func drawNode(t *rapid.T) drawnNode {
	number := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	blocks := func(name string, whole eni.Block) eni.Block {
		return rapid.SampledFrom([]eni.Block{{}, {Bits: whole.Bits, Size: 1}, whole}).Draw(t, name)
	}
	m := drawnNode{
		conf: pool.Config{FirstENI: number("firstENI", 0, 1), MaxAllocate: number("maxAllocate", 0, 60), MaxAllocateENI: number("maxAllocateENI", 0, 5),
			MaxIPsPerENI: number("maxIPsPerENI", 0, 1) * number("of them", 2, 60), TopologyPlaces: number("topologyPlaces", 0, 8)},
		limits: eni.Limits{ENIs: number("ENIs", 1, 8), V4: number("v4", 2, 130), V6: number("v6", 2, 130), NoPrimary: rapid.Bool().Draw(t, "noPrimary"),
			V4Block: blocks("v4Block", eni.Block{Bits: 28, Size: 16}), V6Block: blocks("v6Block", eni.Block{Bits: 80, Size: 32})},
		families: rapid.SampledFrom([][]eni.Family{{eni.IPv4}, {eni.IPv6}, {eni.IPv4, eni.IPv6}}).Draw(t, "families"),
	}
	states := []eni.State{eni.Free, eni.Used, eni.Cooling, eni.Releasing}
	used, have := 0, 0
	for index := range number("attached", 0, m.limits.ENIs) {
		m.state.ENIs = append(m.state.ENIs, eni.Interface{ID: fmt.Sprint("eni-", index), Index: index})
		leaves := rapid.Bool().Draw(t, "leaves")
		for i := range number("addresses", 0, 20) {
			a := eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, byte(index), byte(10 + i)}), ENI: index, State: eni.Releasing}
			if !leaves {
				a.State = rapid.SampledFrom(states).Draw(t, "state")
				have++
			}
			if a.State == eni.Used {
				used++
			}
			m.state.Addresses = append(m.state.Addresses, a)
		}
	}
	m.capacity = m.conf.Most(m.limits, m.families, number("maxPods", 0, 1)*number("pods", 1, 250))
	if rapid.Bool().Draw(t, "capped") {
		m.capacity = min(m.capacity, have) // it can't get more
	}
	m.capacity = max(m.capacity, used)
	return m
}

// devices are those that the agent shows, checked.
func (m drawnNode) devices(t *rapid.T, reserved map[string]int) []devices.Device {
	node := devices.Node{Total: m.capacity, ENIs: withAddresses(&m.state), PerENI: m.conf.SlotsPerENI(m.limits, m.families)}
	list := node.List(reserved)
	sum, taken := 0, 0
	shown := map[string]int{}
	for i, d := range list {
		sum += d.Addresses
		shown[d.Name] = d.Addresses
		if most := max(node.PerENI, reserved[d.Name]); node.PerENI > 0 && d.Addresses > most {
			t.Fatalf("%+v has more than the %d of an ENI", d, most)
		}
		if i > 0 && d.ENI != "" && d.ENI == list[i-1].ENI {
			t.Fatalf("%+v and %+v are one ENI", list[i-1], d)
		}
	}
	for name, n := range reserved {
		if taken += n; shown[name] < n {
			t.Fatalf("%s has %d addresses, and %d of it are reserved", name, shown[name], n)
		}
	}
	if want := max(m.capacity, taken); sum != want {
		t.Fatalf("%d addresses in %+v, want %d: %+v", sum, list, want, m)
	}
	if most := m.conf.Most(m.limits, m.families, 0); m.capacity <= most && taken == 0 && len(list) > m.limits.ENIs-m.conf.FirstIndex(m.limits) {
		t.Fatalf("%d devices of a node of at most %d ENIs", len(list), m.limits.ENIs)
	}
	return list
}

// Whatever a node is and becomes, its devices have the addresses that its pods can have, and not one more: with what was reserved before as well.
func TestDevicesHaveWhatPodsOfTheNodeCanHave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reserved := map[string]int{}
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			list := drawNode(t).devices(t, reserved)
			reserved = map[string]int{} // pods came and went
			for _, d := range list {
				if n := rapid.IntRange(0, d.Addresses).Draw(t, "reserved"); n > 0 {
					reserved[d.Name] = n
				}
			}
		}
	})
}

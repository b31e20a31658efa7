package e2e

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/inventory"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
	nodepkg "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
)

// vpc is a simulated VPC with one node of two ENIs, which have an address of
// each family each: pod a is on ENI 0 and pod b on the second one.
type vpc struct {
	t        *testing.T
	second   int // device index of the second ENI
	net      *sim.Network
	n        *node
	node     nettest.Netns
	internet nettest.Netns
	pods     map[string]nettest.Netns
	inv      inventory.Inventory
}

func named(name string) nettest.Netns {
	ns := isolate.Namespace{Name: name}
	return nettest.Netns{Namespace: ns, Path: ns.Path()}
}

func newVPC(t *testing.T, s ipam.Settings) *vpc {
	t.Helper()
	return newVPCWith(t, s, 1)
}

// newVPCWith is newVPC with another device index for the second ENI. Its link is
// eth1 all the same.
func newVPCWith(t *testing.T, s ipam.Settings, second int) *vpc {
	t.Helper()
	nothingRaces(t)
	return newKept(t, s, second)
}

// newKept is newVPCWith for a test that itself keeps something of the node, as an agent does.
func newKept(t *testing.T, s ipam.Settings, second int) *vpc {
	t.Helper()
	nettest.Need(t)
	s.MarkMask, s.VPC = cmp.Or(s.MarkMask, ipam.DefaultMarkMask), []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	v := &vpc{t: t, second: second, n: &node{t: t, Cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}}, pods: map[string]nettest.Netns{}}
	var err error
	v.net, err = sim.NewNetwork("t", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/48")})
	v.must(err)
	t.Cleanup(func() { v.must(v.net.Close()) })
	v.must(v.net.AddSubnet(eni.Subnet{ID: "s4", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1")}))
	v.must(v.net.AddSubnet(eni.Subnet{ID: "s6", CIDR: netip.MustParsePrefix("2001:db8::/64"), Gateway: netip.MustParseAddr("2001:db8::1")}))
	ns, err := v.net.AddNode("n")
	v.must(err)
	v.node, v.internet = named(ns.Name), named(v.net.Internet().Name)
	inv := v.attach(s)
	v.must(v.net.DHCP("eni-0"))
	v.load(inv)
	v.inv = inv
	for _, id := range []string{"a", "b"} {
		v.pods[id] = nettest.NewNetns(t, "pod-"+id)
		v.plugin("ADD", id)
		t.Cleanup(func() { v.plugin("DEL", id) })
	}
	return v
}

func (v *vpc) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// attach gives the node its ENIs and returns them as an inventory.
func (v *vpc) attach(s ipam.Settings) inventory.Inventory {
	v.t.Helper()
	inv := inventory.Inventory{State: ipam.State{Settings: s}}
	for i := range 2 {
		nic := eni.Interface{ID: fmt.Sprintf("eni-%d", i), Index: i * v.second, Device: fmt.Sprintf("eth%d", i), MTU: 1500,
			V4: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d0/24", i+1)), Gateway: netip.MustParseAddr("10.0.0.1")},
			V6: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d0/64", i+1)), Gateway: netip.MustParseAddr("2001:db8::1")}}
		_, err := v.net.Attach("n", nic)
		v.must(err)
		inv.ENIs = append(inv.ENIs, nic)
		for _, f := range s.Families {
			a := v.addr(f, i)
			v.must(v.net.Assign(nic.ID, a))
			inv.Addresses = append(inv.Addresses, eni.Address{Addr: a, ENI: nic.Index})
		}
	}
	return inv
}

// load puts an inventory in place and returns what it changed.
func (v *vpc) load(inv inventory.Inventory) (lines []string) {
	v.t.Helper()
	v.must(v.node.Do(func() (err error) {
		lines, err = nodepkg.Node{Cache: v.n.Cache, Now: nodecache.SinceBoot}.Load(v.t.Context(), inv)
		return err
	}))
	return lines
}

// addr is the address of the pod on the first or the second ENI.
func (v *vpc) addr(f eni.Family, index int) netip.Addr {
	if f == eni.IPv6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%d1", index+1))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.0.0.%d1", index+1))
}

// plugin runs the plugin on the node.
func (v *vpc) plugin(command, id string) {
	v.t.Helper()
	cmd := v.n.cmd(call{command: command, id: id, netns: v.pods[id].Path, conf: v.n.conf("1.0.0")})
	var out []byte
	err := v.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err != nil {
		v.t.Fatalf("%s %s: %v\n%s", command, id, err, out)
	}
}

// reload puts the pool in place again, as the agent does when the system changed.
func (v *vpc) reload() {
	v.t.Helper()
	v.must(v.node.Do(func() error {
		_, err := nodepkg.Node{Cache: v.n.Cache, Now: nodecache.SinceBoot}.Apply(v.t.Context())
		return err
	}))
}

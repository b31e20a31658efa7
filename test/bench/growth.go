package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// The node of the growth row: nearly full, and as large as one gets.
const (
	manyAddresses = 4096
	manyUsed      = 4000
)

// growthRow measures what an ADD costs when the pool is nearly used up. The
// small cache is one that a node with one pod really has, not a large empty one.
func (b *bench) growthRow() error {
	few, many := filepath.Join(b.temp("few"), "node.cache"), filepath.Join(b.temp("many"), "node.cache")
	if err := writeCache(few, 16, 1); err != nil {
		return err
	}
	if err := writeCache(many, manyAddresses, manyUsed); err != nil {
		return err
	}
	data := b.temp("host-local-many")
	if err := fillHostLocal(data, sbrSubnet, manyUsed); err != nil {
		return err
	}
	adds, dels, err := b.rounds("growth", []contender{
		b.bin.enipool("enipool, 1 of 16 addresses used", few),
		b.bin.enipool(fmt.Sprintf("enipool, %d of %d used", manyUsed, manyAddresses), many),
		b.bin.ptp("ptp+host-local, 1 used", b.temp("host-local-few"), ptpSubnet),
		b.bin.ptp(fmt.Sprintf("ptp+host-local, %d used", manyUsed), data, sbrSubnet),
	})
	if err != nil {
		return err
	}
	b.report.add(adds, target{of: adds[1], ref: &adds[0], want: 1.3}, target{of: adds[3], ref: &adds[2], shown: true})
	b.report.add(dels, target{of: dels[1], ref: &dels[0], shown: true}, target{of: dels[3], ref: &dels[2], shown: true})
	return nil
}

// writeCache writes a node cache of one ENI with that many addresses, of which the
// first are used by pods that exist on paper only.
func writeCache(path string, addresses, used int) error {
	s := &ipam.State{
		Settings: ipam.Settings{SNAT: true, MarkMask: ipam.DefaultMarkMask, VPC: []netip.Prefix{vpc}, Families: []eni.Family{eni.IPv4}},
		ENIs: []eni.Interface{{ID: "eni-a", Device: "eth0", MTU: 1500, V4: eni.Net{
			Primary: netip.MustParsePrefix("10.0.0.10/16"), Gateway: netip.MustParseAddr("10.0.0.1")}}},
	}
	addr := netip.MustParseAddr("10.0.16.0")
	for i := range addresses {
		a := eni.Address{Addr: addr}
		if i < used {
			a.State, a.Owner = eni.Used, paperOwner(i)
		}
		s.Addresses = append(s.Addresses, a)
		addr = addr.Next()
	}
	return nodecache.Cache{Path: path}.Replace(context.Background(), func(*ipam.State, error) (*ipam.State, error) { return s, nil })
}

func paperOwner(i int) *eni.Owner {
	return &eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprintf("%064x", 1<<40+i), IfName: "eth0"},
		Netns: fmt.Sprintf("/run/netns/cni-%036d", i), NetnsInode: 4026532000,
		Namespace: "default", Pod: fmt.Sprintf("web-%d", i), UID: fmt.Sprintf("%036d", i)}
}

// fillHostLocal writes host-local's records: a file an address, with container
// and interface in it.
func fillHostLocal(data string, subnet netip.Prefix, used int) error {
	dir := filepath.Join(data, "reference")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	addr := subnet.Addr().Next() // its gateway
	for i := range used {
		addr = addr.Next()
		if err := os.WriteFile(filepath.Join(dir, addr.String()), []byte(paperOwner(i).Container+"\r\neth0"), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "last_reserved_ip.0"), []byte(addr.String()), 0o600)
}

package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// settled waits until there is nothing wrong.
func (k *kills) settled(least, most int) {
	k.t.Helper()
	k.eventually(fmt.Sprintf("%s: a pool of %d to %d that is the cloud's", k.at, least, most), func() error { return k.wrong(least, most) })
}

// wrong is the difference between the node cache and a pool of least to most addresses, and
// between the node cache and the cloud.
func (k *kills) wrong(least, most int) error {
	c, err := k.count()
	if err != nil {
		return err
	}
	used := 1 // of the pod that stays
	if least == largePool {
		used += len(k.waiting)
	}
	if c.Total < least || c.Total > most || c.Used != used || c.Free != c.Total-used {
		return fmt.Errorf("the pool is %+v", c)
	}
	cached, err := k.view()
	if err != nil {
		return err
	}
	inCache, inCloud := map[netip.Addr]string{}, map[netip.Addr]string{}
	for _, e := range cached.ENIs {
		inCache[e.V4.Primary.Addr()] = e.ID
	}
	for _, a := range cached.Addresses {
		inCache[a.Addr] = cached.ENIs[slices.IndexFunc(cached.ENIs, func(e eni.Interface) bool { return e.Index == a.ENI })].ID
	}
	snapshot := k.account.Snapshot() // one moment later, when there may be something new
	for addr, id := range snapshot.Owners {
		if addr.Is4() { // of IPv6 ENIs have a primary address, which nobody uses
			inCloud[addr] = id
		}
	}
	if diff := cmp.Diff(inCache, inCloud, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		return fmt.Errorf("-cache +cloud:\n%s", diff)
	}
	if slices.ContainsFunc(snapshot.Nodes["n"], func(i cloud.Interface) bool { return i.Index < 0 }) {
		return errors.New("an ENI is attached nowhere")
	}
	return nil
}

// noticedNothing wants each pod to have what the node cache says, the kernel too, and nobody to
// have noticed anything.
func (k *kills) noticedNothing() {
	k.t.Helper()
	owners, err := k.owners()
	k.must(err)
	var ids []string
	for addr, owner := range owners {
		id, _, _ := strings.Cut(strings.TrimPrefix(owner, "default/"), " ")
		ids = append(ids, id)
		if has := k.address(id, false); has != addr.String() {
			k.fail("%s: %s has %s, the node cache says %s", k.at, id, has, addr)
		}
	}
	if has := k.address("a", false); has != k.addr {
		k.fail("%s: a had %s and has %s", k.at, k.addr, has)
	}
	k.reach(internet4, ids...)
	k.flows.alive(k.at)
	k.eventually(k.at+": pool check is content", func() error {
		said, err := k.ctl("pool", "check")
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, said)
		}
		return err
	})
}

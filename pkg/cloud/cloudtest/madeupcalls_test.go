package cloudtest_test

import (
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// slots is how many addresses an ENI of a made-up cloud may have besides its primary.
const slots = 8

func (i instance) Limits(ctx context.Context) (l eni.Limits, err error) {
	err = i.call(ctx, "Limits", "", func(extent) error { l = eni.Limits{ENIs: i.like.enis, V4: slots + 1}; return nil })
	return l, err
}

func (i instance) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	err = i.call(ctx, "Interfaces", "", func(extent) error {
		nics := i.nodes[i.name]
		if i.like.wrong == "shows other nodes' ENIs" {
			nics = i.all()
		}
		list = i.shows(nics)
		i.before = i.shows(nics)
		return nil
	})
	return list, err
}

func (i instance) shows(nics []*cloud.Interface) (list []cloud.Interface) {
	for _, nic := range nics {
		shown := *nic
		shown.Addresses = slices.Clone(nic.Addresses)
		if i.like.wrong == "shows addresses unsorted" {
			slices.Reverse(shown.Addresses)
		}
		list = append(list, shown)
	}
	return list
}

func (i instance) Known() []cloud.Interface {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.like.wrong {
	case "knows nothing without asking":
		return nil
	case "knows nothing of its calls":
		return i.before
	}
	return i.shows(i.nodes[i.name])
}

func (i instance) Notes() cloud.Notes { return cloud.Notes{} } // nothing lags

func (i instance) Recall(cloud.Notes) {}

func (i instance) Subnets(ctx context.Context) (list []cloud.Subnet, err error) {
	err = i.call(ctx, "Subnets", "", func(extent) error {
		s := cloud.Subnet{ID: "the-subnet", V4Net: netip.MustParsePrefix(madeUpSubnet), Free: i.free(), New: i.like.enis > 1}
		if i.like.wrong == "tells what is free beside the pods' range" {
			s.Free = 254 - len(i.all())
		}
		list = []cloud.Subnet{s}
		return nil
	})
	return list, err
}

func (i instance) CreateInterface(ctx context.Context, c cloud.Create) (cloud.Interface, error) {
	var made cloud.Interface
	err := i.call(ctx, "CreateInterface", c.Subnet, func(e extent) error {
		nic := i.find(func(nic *cloud.Interface) bool { return nic.Token == c.Token })
		if nic == nil {
			if err := i.refuses(c); err != nil {
				return err
			}
			nic = i.nic()
			nic.Index, nic.Ours, nic.Token = -1, true, c.Token
			i.nodes[i.name] = append(i.nodes[i.name], nic)
		}
		if e == created {
			return nil
		}
		for index := 1; nic.Index < 0; index++ {
			if i.find(func(o *cloud.Interface) bool { return o.Index == index }) == nil {
				nic.Index = index
			}
		}
		if e != attached {
			i.put(nic, min(c.V4-len(nic.Addresses), i.free()))
		}
		made = *nic
		made.Addresses = slices.Clone(nic.Addresses)
		return nil
	})
	return now(i, &made), err
}

// refuses tells why there can be no such ENI, nil if there can.
func (i instance) refuses(c cloud.Create) error {
	primary := 0
	if i.like.pods == madeUpSubnet {
		primary = 1
	}
	switch {
	case len(i.nodes[i.name]) >= i.like.enis:
		switch i.like.wrong {
		case "makes an ENI beyond its limits":
			return nil
		case "says forbidden where no ENI fits":
			return cloud.ErrForbidden
		case "leaves the ENI that does not fit":
			i.nodes[i.name] = append(i.nodes[i.name], i.nic())
		}
		return cloud.ErrLimit
	case c.Subnet != "the-subnet":
		return cloud.ErrNotFound
	case c.V4 > slots:
		return cloud.ErrLimit
	case i.free() < primary+min(c.V4, 1):
		return cloud.ErrSubnetFull
	}
	return nil
}

// put puts n addresses on an ENI and returns them.
func (i instance) put(nic *cloud.Interface, n int) []netip.Addr {
	from := i.like.pods
	if i.like.wrong == "takes pods' addresses from the primary's subnet" {
		from = madeUpSubnet
	}
	added := i.take(netip.MustParsePrefix(from), n)
	nic.Addresses = append(nic.Addresses, added...)
	slices.SortFunc(nic.Addresses, netip.Addr.Compare)
	return added
}

func (i instance) AssignAddresses(ctx context.Context, id string, _ eni.Family, n int) ([]netip.Addr, error) {
	var addrs []netip.Addr
	err := i.call(ctx, "AssignAddresses", id, func(e extent) error {
		nic := i.byID(id)
		if nic == nil || nic.Index < 0 {
			return cloud.ErrNotFound
		}
		room := slots - len(nic.Addresses)
		if i.like.wrong == "knows no limit" {
			room = n
		}
		switch {
		case room <= 0:
			return cloud.ErrLimit
		case i.free() <= 0:
			return cloud.ErrSubnetFull
		case e == half:
			n /= 2
		}
		addrs = i.put(nic, min(n, room, i.free()))
		if i.like.wrong == "returns all that the ENI has" {
			addrs = slices.Clone(nic.Addresses)
		}
		return nil
	})
	return now(i, &addrs), err
}

// now is what a call has brought so far: the effect of one that comes late sets it after the call has returned.
func now[T any](i instance, result *T) T {
	i.mu.Lock()
	defer i.mu.Unlock()
	return *result
}

func (i instance) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	return i.call(ctx, "UnassignAddresses", id, func(e extent) error {
		nic := i.byID(id)
		if nic == nil {
			return nil
		}
		gone := addrs
		if e == half {
			gone = addrs[:len(addrs)/2]
		}
		has := func(a netip.Addr) bool { return slices.Contains(nic.Addresses, a) }
		if i.like.wrong == "refuses what is gone already" && len(gone) > 0 && !slices.ContainsFunc(gone, has) {
			return cloud.ErrForbidden
		}
		if i.like.wrong == "takes one at a time" {
			gone = gone[:min(len(gone), 1)]
		}
		nic.Addresses = slices.DeleteFunc(nic.Addresses, func(a netip.Addr) bool { return slices.Contains(gone, a) })
		return nil
	})
}

func (i instance) DeleteInterface(ctx context.Context, id string) error {
	return i.call(ctx, "DeleteInterface", id, func(extent) error {
		nic := i.byID(id)
		elsewhere := slices.ContainsFunc(i.all(), func(o *cloud.Interface) bool { return o.ID == id })
		switch {
		case nic == nil && elsewhere, nic != nil && !nic.Ours && i.like.wrong != "says that it deletes the node's own ENI":
			return cloud.ErrForbidden
		case nic != nil && nic.Ours:
			i.nodes[i.name] = slices.DeleteFunc(i.nodes[i.name], func(o *cloud.Interface) bool { return o == nic })
		}
		return nil
	})
}

package main

import (
	"fmt"
	"net"
	"os"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/vishvananda/netlink"
)

// space is a named network namespace; the zero one is that of the program.
type space struct{ isolate.Namespace }

// newSpace makes the namespace.
func newSpace(name string) (space, error) {
	s := space{isolate.Namespace{Name: name}}
	return s, s.Create()
}

// newSpaces makes n namespaces called prefix0, prefix1 and so on.
func newSpaces(prefix string, n int) ([]space, error) {
	list := make([]space, n)
	for i := range list {
		s, err := newSpace(fmt.Sprint(prefix, i))
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// do runs fn inside the namespace; what fn starts is inside too.
func (s space) do(fn func() error) error {
	if s.Name == "" {
		return fn()
	}
	return s.Do(fn)
}

func up(dev string) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("look up %s: %w", dev, err)
	}
	return netlink.LinkSetUp(link)
}

// cable makes a veth pair from dev here to a link of the same name in the other
// namespace, both up.
func cable(dev string, other space) error {
	ns, err := os.Open(other.Path())
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer ns.Close()
	v := netlink.NewVeth(netlink.LinkAttrs{Name: dev, Flags: net.FlagUp})
	v.PeerName, v.PeerNamespace = dev, netlink.NsFd(ns.Fd())
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("make %s: %w", dev, err)
	}
	return other.do(func() error { return up(dev) })
}

package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// space is a named network namespace; "" is the one the program runs in.
type space string

func (s space) path() string { return filepath.Join("/run/netns", string(s)) }

// newSpace makes the namespace on a thread that ends with it.
func newSpace(name string) (space, error) {
	return space(name), onThread(func() error {
		h, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("make network namespace %s: %w", name, err)
		}
		return errors.Join(up("lo"), h.Close())
	})
}

// newSpaces makes n namespaces called prefix0, prefix1 and so on.
func newSpaces(prefix string, n int) ([]space, error) {
	list := make([]space, n)
	for i := range list {
		s, err := newSpace(fmt.Sprintf("%s%d", prefix, i))
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// do runs fn on a thread inside the namespace; what fn starts is inside too.
func (s space) do(fn func() error) error {
	if s == "" {
		return fn()
	}
	return onThread(func() error {
		h, err := netns.GetFromName(string(s))
		if err != nil {
			return fmt.Errorf("open network namespace %s: %w", s, err)
		}
		defer h.Close()
		if err := netns.Set(h); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", s, err)
		}
		return fn()
	})
}

// onThread never gives the thread back: it may have changed its namespace.
func onThread(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- fn()
	}()
	return <-done
}

func up(dev string) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("look up %s: %w", dev, err)
	}
	return netlink.LinkSetUp(link)
}

// cable makes a veth pair from dev here to peer in the other namespace, both up.
func cable(dev string, peer string, other space) error {
	h, err := netns.GetFromName(string(other))
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", other, err)
	}
	defer h.Close()
	v := netlink.NewVeth(netlink.LinkAttrs{Name: dev, Flags: net.FlagUp})
	v.PeerName, v.PeerNamespace = peer, netlink.NsFd(h)
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("make %s: %w", dev, err)
	}
	return other.do(func() error { return up(peer) })
}

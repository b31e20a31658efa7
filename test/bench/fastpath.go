package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/ipam"
	pkgnode "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"golang.org/x/sys/unix"
)

// fastWhat names the node whose packets take the fast path.
const fastWhat = "fast path"

// keepFast switches the node's fast path on, as its agent does, and keeps it on to
// the end of the run. It gives the node a cooldown: without one the program asks
// the kernel for each packet, because an address could be another pod's at once.
func (n *crowded) keepFast() error {
	cache := nodecache.Cache{Path: n.cache}
	err := cache.Replace(context.Background(), func(s *ipam.State, err error) (*ipam.State, error) {
		if s != nil {
			s.Settings.CoolDown = time.Second
		}
		return s, err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bpf.FileSystem, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := unix.Mount("bpf", bpf.FileSystem, "bpf", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", bpf.FileSystem, err)
	}
	n.fast = &pkgnode.FastPath{Cache: cache, Log: slog.New(slog.DiscardHandler)}
	n.fast.Switch(true)
	if err := n.needFast(); err != nil {
		return err
	}
	go func() { _ = n.space.do(func() error { n.fast.Run(context.Background()); return nil }) }()
	return nil
}

// needFast gives the fast path to all links and fails where it is off. A round has it
// given to some of them.
func (n *crowded) needFast() error {
	n.fast.LookAgain()
	for range slices.Max(crowds())/16 + 2 {
		if err := n.space.do(func() error { n.fast.Keep(context.Background()); return nil }); err != nil {
			return err
		}
		if off := n.fast.Status().Off; len(off) > 0 {
			return fmt.Errorf("the fast path is off: %s", strings.Join(off, "; "))
		}
	}
	return nil
}

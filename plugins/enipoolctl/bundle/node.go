package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/plugins/enipoolctl/pool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// onNode is where things are on a node.
type onNode struct {
	cache                         nodecache.Cache
	config, network, log, release string
}

// parts are those of a node. The agent's image has neither ip nor nft: links, routes and rules are read by netlink, and nftables where nft is.
func (n onNode) parts() []part {
	cache := "--cache=" + n.cache.Path
	list := []part{
		{"versions.txt", func(context.Context) ([]byte, error) { return tellVersions(n.release) }},
		printedBy("pool-show.txt", pool.Command(), "show", "-o", "wide", cache),
		printedBy("pool-show.json", pool.Command(), "show", "-o", "json", cache),
		printedBy("pool-check.txt", pool.Command(), "check", cache),
		fileAt("node.cache", n.cache.Path),
		fileAt("agent.status.json", status.Beside(n.cache.Path).Path),
		fileAt("agent.yaml", n.config),
		fileAt("enipool.log", n.log),
		{"links.txt", listLinks},
		{"rules.txt", listRules},
		{"routes.txt", listRoutes},
		{"nftables.txt", outputOf("nft", "list", "ruleset")},
		{"iptables.txt", outputOf("iptables-save")},
	}
	confs, _ := filepath.Glob(filepath.Join(n.network, "*.conf*")) // the pattern is right
	for _, path := range confs {
		list = append(list, fileAt(filepath.Join("net.d", filepath.Base(path)), path))
	}
	return list
}

func tellVersions(release string) ([]byte, error) {
	var of unix.Utsname
	if err := unix.Uname(&of); err != nil {
		return nil, fmt.Errorf("ask the kernel for its name: %w", err)
	}
	text := fmt.Sprintf("enipoolctl %s (%s, %s)\nkernel %s %s\n", release, runtime.Version(), runtime.GOARCH, unix.ByteSliceToString(of.Release[:]), unix.ByteSliceToString(of.Version[:]))
	system, err := os.ReadFile("/etc/os-release")
	if errors.Is(err, os.ErrNotExist) { // an image without a system
		err = nil
	}
	return append([]byte(text), system...), err
}

// outputOf is what another program prints.
func outputOf(name string, args ...string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, errors.New("this machine has no " + name)
		}
		var out, said limited
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil {
			return out.Bytes(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.String())
		}
		return out.Bytes(), nil
	}
}

func listLinks(context.Context) ([]byte, error) {
	list, err := netlink.LinkList()
	var text bytes.Buffer
	for _, l := range list {
		a := l.Attrs()
		fmt.Fprintf(&text, "%d %s type %s flags %s mtu %d master %d peer %d netns %d %s alias %q\n", a.Index, a.Name, l.Type(), a.Flags, a.MTU, a.MasterIndex, a.ParentIndex, a.NetNsID, a.HardwareAddr, a.Alias)
		addrs, errOf := netlink.AddrList(l, netlink.FAMILY_ALL)
		for _, at := range addrs {
			fmt.Fprintf(&text, "    %s\n", at)
		}
		err = errors.Join(err, errOf)
	}
	return text.Bytes(), err
}

func listRules(context.Context) ([]byte, error) {
	var text bytes.Buffer
	var errs []error
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := netlink.RuleList(family)
		errs = append(errs, err)
		for _, r := range list {
			fmt.Fprintf(&text, "%s mark %#x/%#x protocol %d suppress %d\n", r, r.Mark, r.Mask, r.Protocol, r.SuppressPrefixlen)
		}
	}
	return text.Bytes(), errors.Join(errs...)
}

// listRoutes tells those of all tables but the local one.
func listRoutes(context.Context) ([]byte, error) {
	list, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	var text bytes.Buffer
	for _, r := range list {
		if r.Table != unix.RT_TABLE_LOCAL {
			fmt.Fprintf(&text, "table %d protocol %d %s\n", r.Table, r.Protocol, r)
		}
	}
	return text.Bytes(), err
}

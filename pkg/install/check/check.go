// Package check checks a node before enipool is installed on it: what the kernel can do, which
// services would change enipool's links, and which plugin the runtime would call. It leaves nothing
// behind.
package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Needs are what the agent's configuration asks of the node, and what else bears on
// the checks.
type Needs struct {
	Settings    ipam.Settings
	AnyFirewall bool // the packet filter is left to what works

	Network   string // the name of enipool's network
	Delegated bool   // another plugin makes the pods' links, and enipool only gives addresses

	ConfDir  string               // the runtime's network configurations
	ENILinks []string             // patterns of the links of ENIs, but for the node's own
	System   []install.SystemFile // that will be there afterwards
	Skipped  bool                 // system files are not written: a person has to
}

func (n Needs) ipv6() bool { return slices.Contains(n.Settings.Families, eni.IPv6) }

// Node checks the node: its files below the tree's root, its kernel in the network
// namespace of the calling thread.
func Node(tree install.Tree, needs Needs) []install.Line {
	return slices.Concat(tryKernel(needs), checkVPC(needs), checkMarkMask(needs), findBlockingChains(needs), checkTables(tree, needs), checkSysctls(needs), findServices(tree, needs), findOverrides(tree, needs), findConfigurations(tree, needs), findLivePods(tree, needs), findSecondaries(tree, needs), findMixedIn(tree, needs))
}

// checkMarkMask warns of a mask that other programs use too.
func checkMarkMask(needs Needs) []install.Line {
	if warning := netconf.MaskWarning(needs.Settings.MarkMask); warning != "" {
		return []install.Line{install.Linef(install.Warning, "%s", warning)}
	}
	return nil
}

// findBlockingChains names chains of others that would cut pods off. They are looked at in
// the network namespace of the calling thread.
func findBlockingChains(needs Needs) []install.Line {
	var flows []firewall.Flow
	for _, family := range needs.Settings.Families {
		own := OwnLinks()
		if len(own) == 0 {
			own = []string{""} // not known
		}
		for _, link := range own {
			flows = append(flows, firewall.PodFlows(family, "", link)...)
		}
	}
	chains, err := firewall.Blocked(context.Background(), flows)
	var lines []install.Line
	for _, c := range chains {
		lines = append(lines, install.Linef(install.MustFix, "pods would be cut off: %s", c))
	}
	switch {
	case err != nil:
		lines = append(lines, notTried("look for chains that drop what is forwarded", err))
	case len(chains) == 0:
		lines = append(lines, okLine("no chain of others drops what pods send or get"))
	}
	return lines
}

// findMixedIn names what a runtime with libcni 1.3 or later appends to our plugins.
func findMixedIn(tree install.Tree, needs Needs) []install.Line {
	dir := filepath.Join(needs.ConfDir, needs.Network)
	at, err := tree.Target(dir)
	if err != nil {
		return nil // findConfigurations reports it
	}
	if more, _ := filepath.Glob(filepath.Join(at, "*.conf")); len(more) > 0 {
		return []install.Line{install.Linef(install.Warning, "newer runtimes also call, after our plugins, those of the files in %s", dir)}
	}
	return nil
}

// exists tells whether the node has the file or folder.
func exists(tree install.Tree, path string) bool {
	at, err := tree.Target(path)
	if err == nil {
		_, err = os.Stat(at)
	}
	return err == nil
}

// linkExists is exists for a link whose target need not be seen from here.
func linkExists(tree install.Tree, path string) bool {
	at, err := tree.Path(path)
	if err == nil {
		_, err = os.Lstat(at)
	}
	return err == nil
}

func okLine(format string, args ...any) install.Line {
	return install.Linef(install.OK, "%s", fmt.Sprintf(format, args...))
}

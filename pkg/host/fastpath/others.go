package fastpath

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
)

// Generation tells one state of the packet filters from the next.
type Generation struct {
	nftables uint32
	legacy   string
	busy     string // links at which others look at what comes in
}

// ReadGeneration reads the generation of the network namespace. It costs a
// millisecond with hundreds of pods.
func ReadGeneration() (g Generation, err error) {
	if g.nftables, err = nftGeneration(); err != nil {
		return g, err
	}
	tables, err := legacyTables()
	if err != nil {
		return g, err
	}
	busy, err := busyLinks()
	g.legacy, g.busy = strings.Join(tables, " "), fmt.Sprint(busy)
	return g, err
}

// ReadOthers reads what other programs have in the network namespace.
func ReadOthers() (netconf.Others, error) {
	var o netconf.Others
	var err error
	if o.Chains, err = readChains(); err != nil {
		return o, fmt.Errorf("read nftables: %w", err)
	}
	if o.Legacy, err = legacyTables(); err != nil {
		return o, err
	}
	policies, err := netlink.XfrmPolicyList(netlink.FAMILY_V4)
	if err != nil && !unknownProtocol(err) {
		return o, fmt.Errorf("list IPsec policies: %w", err)
	}
	o.IPsec = len(policies) > 0
	services, err := os.ReadFile("/proc/net/ip_vs")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, fmt.Errorf("list IPVS services: %w", err)
	}
	if o.Programs, err = netfilterPrograms(); err != nil {
		return o, err
	}
	o.IPVS = bytes.Count(services, []byte("\n")) > ipvsHead
	return o, nil
}

// netfilterPrograms tells whether bpf programs see forwarded packets at netfilter's
// hooks, in whatever network namespace: the kernel does not say in which.
func netfilterPrograms() (bool, error) {
	var list link.Iterator
	defer list.Close()
	for list.Next() {
		info, err := list.Link.Info()
		if err != nil {
			return false, fmt.Errorf("look at bpf link %d: %w", list.ID, err)
		}
		if at := info.Netfilter(); at != nil && at.ProtocolFamily != link.NetfilterProtoIPv6 &&
			at.Hook != link.NetfilterInetLocalIn && at.Hook != link.NetfilterInetLocalOut {
			return true, nil
		}
	}
	if err := list.Err(); err != nil {
		return false, fmt.Errorf("list bpf programs at netfilter's hooks, which takes CAP_SYS_ADMIN: %w", err)
	}
	return false, nil
}

// ipvsHead is how many lines /proc/net/ip_vs has without services.
const ipvsHead = 3

// legacyTables returns the tables of the older iptables of the network namespace,
// without nat.
func legacyTables() ([]string, error) {
	text, err := os.ReadFile("/proc/thread-self/net/ip_tables_names")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list tables of iptables: %w", err)
	}
	tables := slices.DeleteFunc(strings.Fields(string(text)), func(t string) bool { return t == "nat" })
	slices.Sort(tables)
	return tables, nil
}

// busyLinks returns the links, by index, at which others look at what comes in:
// a limit of what the pod sends, another CNI plugin.
func busyLinks() (map[int]bool, error) {
	list, err := netlink.QdiscList(nil)
	if err != nil {
		return nil, fmt.Errorf("list queues of links: %w", err)
	}
	busy := map[int]bool{}
	for _, q := range list {
		if q.Type() == "ingress" || q.Type() == "clsact" {
			busy[q.Attrs().LinkIndex] = true
		}
	}
	return busy, nil
}

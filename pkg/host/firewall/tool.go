package firewall

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// lockWait is how many seconds iptables waits for the lock of others.
const lockWait = 5

// tool is iptables or ip6tables, of the variant that keeps its rules in nftables
// or of the legacy one.
type tool struct {
	*iptables.IPTables
	name   string
	path   string
	family eni.Family
	legacy bool
}

// kernelFamilies are those that the kernel has: ip6tables fails without IPv6.
func kernelFamilies() []eni.Family {
	if host.HasIPv6() {
		return []eni.Family{eni.IPv4, eni.IPv6}
	}
	return []eni.Family{eni.IPv4}
}

func plainName(f eni.Family) string {
	if f == eni.IPv6 {
		return "ip6tables"
	}
	return "iptables"
}

// lookPath finds a program in PATH or where systems keep it: a service's PATH
// often lacks the sbin folders.
func lookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w: install the package iptables, or use firewall nftables", name, fs.ErrNotExist)
}

// findTool returns fs.ErrNotExist where the program is not installed.
func findTool(family eni.Family, name string) (tool, error) {
	path, err := lookPath(name)
	if err != nil {
		return tool{}, err
	}
	protocol := iptables.ProtocolIPv4
	if family == eni.IPv6 {
		protocol = iptables.ProtocolIPv6
	}
	t := tool{name: name, path: path, family: family}
	if t.IPTables, err = iptables.New(iptables.IPFamily(protocol), iptables.Timeout(lockWait), iptables.Path(path)); err != nil {
		return tool{}, fmt.Errorf("run %s: %w", path, err)
	}
	// Only the program itself tells: "iptables" may be either variant.
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		return tool{}, fmt.Errorf("run %s --version: %w", path, err)
	}
	t.legacy = !strings.Contains(string(version), "nf_tables")
	return t, nil
}

// findVariants returns a tool for each variant and family that may hold chains of
// ours, apart from those of skip.
func findVariants(skip []tool) ([]tool, error) {
	var found []tool
	for _, family := range kernelFamilies() {
		for _, legacy := range []bool{false, true} {
			same := func(t tool) bool { return t.family == family && t.legacy == legacy }
			if slices.ContainsFunc(skip, same) {
				continue
			}
			// Before a tool is started: to look by the legacy one makes the kernel set up tables.
			if may, err := mayHold(family, legacy); err != nil || !may {
				if err != nil {
					return nil, err
				}
				continue
			}
			t, err := findVariant(family, legacy)
			if err == nil {
				found = append(found, t)
			} else if !isNotInstalled(err) {
				return nil, err
			}
		}
	}
	return found, nil
}

// findVariant returns the tool of the variant, fs.ErrNotExist where none is installed.
func findVariant(family eni.Family, legacy bool) (tool, error) {
	suffix := "-nft"
	if legacy {
		suffix = "-legacy"
	}
	for _, name := range []string{plainName(family) + suffix, plainName(family)} {
		t, err := findTool(family, name)
		if err != nil && !isNotInstalled(err) || err == nil && t.legacy == legacy {
			return t, err
		}
	}
	return tool{}, fmt.Errorf("find %s%s: %w", plainName(family), suffix, fs.ErrNotExist)
}

// mayHold tells whether the variant has chains of ours or, for the legacy one,
// tables that can have some.
func mayHold(family eni.Family, legacy bool) (bool, error) {
	if legacy {
		names, err := legacyTables(family)
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(iptTables(), n) }), err
	}
	chains, err := nftChains(family)
	return slices.ContainsFunc(chains, func(c *nftables.Chain) bool {
		return netconf.IsIptChain(c.Name)
	}), err
}

// legacyTables returns the tables that legacy iptables has in the kernel.
func legacyTables(family eni.Family) ([]string, error) {
	prefix := "ip"
	if family == eni.IPv6 {
		prefix = "ip6"
	}
	names, err := os.ReadFile("/proc/thread-self/net/" + prefix + "_tables_names")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list tables of legacy iptables: %w", err)
	}
	return strings.Fields(string(names)), nil
}

func nftChains(family eni.Family) ([]*nftables.Chain, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	number := nftables.TableFamilyIPv4
	if family == eni.IPv6 {
		number = nftables.TableFamilyIPv6
	}
	chains, err := c.ListChainsOfTableFamily(number)
	if err != nil && !noNftables(err) {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	return chains, nil
}

// hasTable tells whether the kernel has the table at all.
func (t tool) hasTable(table string) (bool, error) {
	if t.legacy {
		names, err := legacyTables(t.family)
		return slices.Contains(names, table), err
	}
	chains, err := nftChains(t.family)
	return slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == table }), err
}

// sampleFirewall is a firewall that needs all we ever ask of a packet filter. Nothing it
// says can match: its links do not exist and its chains are not jumped to.
func sampleFirewall() netconf.Firewall {
	var s ipam.State
	s.Settings = ipam.Settings{SNAT: true, MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4, eni.IPv6}}
	for i, dev := range []string{"try0", "try1"} {
		nic := eni.Interface{Index: i, Device: dev}
		nic.V4.Primary, nic.V6.Primary = documentationPrefix(eni.IPv4, 1+i), documentationPrefix(eni.IPv6, 1+i)
		s.ENIs = append(s.ENIs, nic)
		s.Settings.VPC = append(s.Settings.VPC, nic.V4.Primary)
		for _, p := range []eni.Family{eni.IPv4, eni.IPv6} {
			s.Addresses = append(s.Addresses, eni.Address{Addr: documentationPrefix(p, 10+i).Addr(), ENI: i})
		}
	}
	return netconf.NewFirewall(&s)
}

// iptWorks builds the chains of the sample, without a jump, and removes them.
// Without ip6tables a node without IPv6 works.
func iptWorks() error {
	for _, family := range kernelFamilies() {
		t, err := findTool(family, plainName(family))
		if isNotInstalled(err) && family == eni.IPv6 {
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range sampleFirewall().Iptables(family) {
			c.Name, c.Rules = netconf.IptPodsPrefix+"TRY-"+c.Table, withoutOurJumps(c.Rules)
			err := cmp.Or(t.ClearAndDeleteChain(c.Table, c.Name), t.buildChain(c))
			if err = errors.Join(err, t.ClearAndDeleteChain(c.Table, c.Name)); err != nil {
				return fmt.Errorf("try %s: %w; %s", t.name, err, adviceFor(err,
					"load the kernel modules xt_connmark, xt_conntrack, xt_rpfilter and iptable_nat, or use firewall nftables"))
			}
		}
	}
	return nil
}

// withoutOurJumps lets rules return instead of jumping to chains of ours, which
// may be in use or not there.
func withoutOurJumps(rules []string) []string {
	var list []string
	for _, r := range rules {
		if match, target, jumps := strings.Cut(r, "-j "); jumps && netconf.IsIptChain(target) {
			r = match + "-j RETURN"
		}
		list = append(list, r)
	}
	return list
}

// documentationPrefix returns an address that is nobody's, RFC 5737 and RFC 3849, with
// the mask of a subnet.
func documentationPrefix(f eni.Family, host int) netip.Prefix {
	if f == eni.IPv4 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(host)}), 24)
	}
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: byte(host)}), 64)
}

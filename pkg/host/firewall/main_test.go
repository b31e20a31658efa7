package firewall_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// newNode puts the test into an empty network namespace of its own. The thread
// is never unlocked, so it ends with the test and the namespace with it.
func newNode(t *testing.T) {
	t.Helper()
	nettest.Need(t)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	sh(t, "ip link set lo up")
}

// sh runs a script in the test's namespace and returns what it prints.
func sh(t *testing.T, format string, args ...any) string {
	t.Helper()
	out, err := try(format, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(format string, args ...any) (string, error) {
	script := fmt.Sprintf(format, args...)
	cmd := exec.Command("sh", "-ec", script)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s\n%s", err, stderr.String(), script)
	}
	return string(out), nil
}

// nodeState is a node with ENIs eth0 and eth1 and two addresses of each family on
// each: 10.0.0.11, .12 and fd00::11, ::12 on the first, .21, .22 on the second.
func nodeState(b ipam.Firewall, families ...eni.Family) *ipam.State {
	s := &ipam.State{Settings: ipam.Settings{Firewall: b, SNAT: true, MarkMask: ipam.DefaultMarkMask, Families: families,
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")}}}
	if b == ipam.Iptables {
		s.Settings.Routing = ipam.Rule
	}
	for i := range 2 {
		nic := eni.Interface{ID: fmt.Sprint("eni-", i), Index: i, Device: fmt.Sprint("eth", i), MTU: 1500}
		for _, f := range families {
			format, n := "10.0.0.%d", &nic.V4
			if f == eni.IPv6 {
				format, n = "fd00::%d", &nic.V6
			}
			n.Primary = netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf(format, 10*(i+1))), f.Bits()-8)
			n.Gateway = netip.MustParseAddr(fmt.Sprintf(format, 1))
			for k := range 2 {
				a := netip.MustParseAddr(fmt.Sprintf(format, 10*(i+1)+k+1))
				s.Addresses = append(s.Addresses, eni.Address{Addr: a, ENI: i})
			}
		}
		s.ENIs = append(s.ENIs, nic)
	}
	return s
}

// variant is one way of filtering packets, with the families to try it with.
type variant struct {
	name     string
	backend  ipam.Firewall
	families []eni.Family
}

// each runs the test for both filters and all combinations of families.
func each(t *testing.T, test func(t *testing.T, v variant)) {
	for _, b := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
		for _, families := range [][]eni.Family{{eni.IPv4}, {eni.IPv6}, {eni.IPv4, eni.IPv6}} {
			v := variant{fmt.Sprint(b, " ", families), b, families}
			t.Run(v.name, func(t *testing.T) {
				newNode(t)
				test(t, v)
			})
		}
	}
}

// legacyIptables makes iptables and ip6tables the legacy ones.
func legacyIptables(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"iptables", "ip6tables", "iptables-restore", "ip6tables-restore"} {
		path, err := exec.LookPath(strings.Replace(name, "tables", "tables-legacy", 1))
		if err != nil {
			t.Skip("needs the legacy variant of iptables:", err)
		}
		if err := os.Symlink(path, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func apply(t *testing.T, f netconf.Firewall) []string {
	t.Helper()
	would, err := firewall.Diff(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	change, err := firewall.Apply(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	did := change.Lines
	if diff := cmp.Diff(would, did); diff != "" {
		t.Errorf("Diff foretold other changes than Apply made:\n%s", diff)
	}
	return did
}

// holds checks the kernel against f in text, and that another Apply has nothing
// to do.
func holds(t *testing.T, f netconf.Firewall) {
	t.Helper()
	if diff := cmp.Diff(wanted(f), kernel(t, f)); diff != "" {
		t.Errorf("the kernel holds something else:\n%s", diff)
	}
	if did := apply(t, f); did != nil {
		t.Errorf("a second Apply changed something:\n%s", strings.Join(did, "\n"))
	}
}

func wanted(f netconf.Firewall) []string {
	if f.Backend == ipam.Nftables {
		return blocks(f.Nft())
	}
	var lines []string
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		for _, c := range f.Iptables(family) {
			for _, line := range c.Lines() {
				lines = append(lines, fmt.Sprintf("%s %s %s", family, c.Table, line))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// kernel returns what the kernel has of ours, as wanted puts it.
func kernel(t *testing.T, f netconf.Firewall) []string {
	t.Helper()
	if f.Backend == ipam.Nftables {
		text := sh(t, "nft list table inet enipool")
		replies, _ := try("nft list table inet enipool-pods") // a node with one ENI has none
		return blocks(text + replies)
	}
	var lines []string
	for family, tool := range map[eni.Family]string{eni.IPv4: "iptables", eni.IPv6: "ip6tables"} {
		for _, table := range []string{"mangle", "nat", "raw"} {
			for line := range strings.Lines(sh(t, "%s -t %s -S", tool, table)) {
				if strings.Contains(line, " ENIPOOL-") || strings.Contains(line, " ENIPODS-") {
					lines = append(lines, fmt.Sprintf("%s %s %s", family, table, strings.TrimSpace(line)))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// blocks returns the sets and chains of our tables sorted, because a list shows
// them in the order in which they came to be.
func blocks(text string) []string {
	var list []string
	for _, table := range strings.Split(text, "table inet ")[1:] {
		name, body, _ := strings.Cut(table, " {\n")
		for _, block := range strings.Split(strings.TrimSuffix(strings.TrimSuffix(body, "}\n"), "\n"), "\n\n") {
			list = append(list, name+block)
		}
	}
	slices.Sort(list)
	return list
}

// ruleset is all of nftables, with counters at zero.
func ruleset(t *testing.T) string {
	t.Helper()
	return regexp.MustCompile(`packets \d+ bytes \d+`).ReplaceAllString(sh(t, "nft list ruleset"), "packets 0 bytes 0")
}

package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/install/dropin"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// newTree makes a node's files, each empty unless it is like "path=text", and a
// folder where the path ends with a slash.
func newTree(t *testing.T, files ...string) install.Tree {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path, text, _ := strings.Cut(f, "=")
		dir := filepath.Join(root, path)
		if !strings.HasSuffix(path, "/") {
			dir = filepath.Dir(dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "/") {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return install.Tree{Root: root}
}

func texts(lines []install.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	return b.String()
}

func needs() Needs {
	n := Needs{Network: "enipool", ConfDir: install.ConfDir, AnyFirewall: true, ENILinks: []string{"eth[1-9]*"}}
	n.Settings = ipam.Settings{Routing: ipam.Map, SNAT: true, MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}}
	n.System = dropin.Files(dropin.Node{ConfDir: install.ConfDir, Agent: true})
	return n
}

// The agent's init container runs while Calico's Felix, which needs no pod network, runs
// already, and knows no pod: if install refused, no pod would ever start.
func TestCalicoWithoutPodsDoesNotCutThemOff(t *testing.T) {
	for felix, script := range map[string]string{"iptables": nettest.FelixIptables(), "nft": nettest.FelixNft(), "iptables, with pods": nettest.FelixIptables("eni0123456789a")} {
		nettest.Need(t)
		nettest.Run(t, "sh", "-ec", script)
		if got := texts(findBlockingChains(needs())); !strings.HasPrefix(got, "ok ") {
			t.Errorf("Felix by %s: %s", felix, got)
		}
		nettest.Run(t, "nft", "flush", "ruleset")
	}
}

func TestAMarkMaskOfOthersIsWarnedOf(t *testing.T) {
	n := needs()
	if got := checkMarkMask(n); got != nil {
		t.Errorf("the default mask: %s", texts(got))
	}
	n.Settings.MarkMask = 0x00ff0000
	if got := texts(checkMarkMask(n)); !strings.HasPrefix(got, "warning ") || !strings.Contains(got, "shares the bits 0x00ff0000 with Tailscale") ||
		!strings.Contains(got, "remove markMask") {
		t.Errorf("the mask of Tailscale: %s", got)
	}
}

func TestAChainThatDropsWhatPodsSendMustBeFixed(t *testing.T) {
	nettest.Need(t)
	if got := texts(findBlockingChains(needs())); !strings.HasPrefix(got, "ok ") {
		t.Errorf("nobody filters: %s", got)
	}
	nettest.Run(t, "nft", "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }")
	t.Cleanup(func() { nettest.Run(t, "nft", "delete table ip filter") })
	got := texts(findBlockingChains(needs()))
	for _, want := range []string{"must fix", "pods would be cut off", "table ip filter: chain FORWARD", "iptables -I FORWARD -i eni+ -j ACCEPT"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestConfigurationsThatComeBeforeOursAreNamed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		want  string
	}{
		{"no folder", nil, "ok        no network configuration comes before 10-enipool.conflist in /etc/cni/net.d\n"},
		{"ours, later ones and other files", []string{"10-enipool.conflist", "20-x.conf", "10-flannel.json", "00-readme.txt", "05-x.conflist.bak", "00-dir.conf/", ".10-enipool.conflist.enipool-new"},
			"ok        no network configuration comes before 10-enipool.conflist in /etc/cni/net.d\n"},
		{"earlier ones of each kind", []string{"10-aws.conflist={}", "05-cilium.conf={}", "10-enipool-ipam.conflist={}", "00-x.json={}"},
			"must fix  in /etc/cni/net.d runtimes take the first network configuration, and before 10-enipool.conflist there is " +
				"00-x.json, 05-cilium.conf, 10-aws.conflist, 10-enipool-ipam.conflist: its plugin would go on serving new pods, and no pod gets an address of enipool. " +
				"Take that plugin off the cluster, or off this node, and move the file away; --force installs beside it\n"},
		{"one where enipool is installed already", []string{"10-aws.conflist={}", "10-enipool.conflist"},
			"warning   in /etc/cni/net.d runtimes take the first network configuration, and before 10-enipool.conflist there is 10-aws.conflist: " +
				"its plugin would go on serving new pods, and no pod gets an address of enipool. " +
				"Take that plugin off the cluster, or off this node, and move the file away; enipool is installed here already, so this run goes on\n"},
		{"one that is damaged", []string{"01-x.conflist={\"name\": "},
			"must fix  /etc/cni/net.d/01-x.conflist comes before 10-enipool.conflist and can't be read as a network configuration: unexpected end of JSON input. " +
				"As long as it is there containerd takes no other one, and no pod starts; CRI-O passes over it. Repair it, or move it away\n"},
		{"a damaged one where enipool is installed already", []string{"01-x.conf=[]", "10-enipool.conflist"},
			"warning   /etc/cni/net.d/01-x.conf comes before 10-enipool.conflist and can't be read as a network configuration: json: cannot unmarshal array into Go value of type map[string]json.RawMessage. " +
				"As long as it is there containerd takes no other one, and no pod starts; CRI-O passes over it. Repair it, or move it away\n"},
		{"one that calls enipool", []string{`05-mine.conflist={"cniVersion":"1.0.0","name":"mine","plugins":[{"type":"enipool"}]}`},
			"warning   in /etc/cni/net.d runtimes take the first network configuration, and before 10-enipool.conflist there is 05-mine.conflist, " +
				"which calls enipool too: ours is not used until that is moved away\n"},
		{"Multus, which calls enipool's file", []string{`00-multus.conflist={"name":"m","plugins":[{"type":"multus","clusterNetwork":"/etc/cni/net.d/10-enipool.conflist"}]}`},
			"ok        in /etc/cni/net.d 00-multus.conflist comes first, and enipool's is the cluster network of that Multus\n"},
		{"Multus, which calls enipool by its name", []string{`00-multus.conf={"name":"m","type":"multus-shim","clusterNetwork":"enipool"}`},
			"ok        in /etc/cni/net.d 00-multus.conf comes first, and enipool's is the cluster network of that Multus\n"},
		{"Multus, which has a copy of enipool's", []string{`00-multus.conf={"name":"m","type":"multus","delegates":[{"name":"enipool","plugins":[{"type":"enipool"},{"type":"tuning"}]},{"type":"ptp"}]}`},
			"ok        in /etc/cni/net.d 00-multus.conf comes first, and enipool's is the cluster network of that Multus\n"},
		{"Multus, which has enipool as another's IPAM", []string{`00-multus.conf={"name":"m","type":"multus","delegates":[{"type":"ptp","ipam":{"type":"enipool"}}]}`},
			"ok        in /etc/cni/net.d 00-multus.conf comes first, and enipool's is the cluster network of that Multus\n"},
		{"Multus with another cluster network", []string{`00-multus.conf={"name":"m","type":"multus","delegates":[{"type":"ptp"},{"type":"enipool"}]}`},
			"must fix  in /etc/cni/net.d 00-multus.conf comes first, and another is the cluster network of that Multus: only pods that ask for a second network of enipool get addresses of it. " +
				"If that is not wanted, make /etc/cni/net.d/10-enipool.conflist its clusterNetwork; --force installs beside it\n"},
		{"Multus with another cluster network where enipool is installed already", []string{`00-multus.conf={"type":"multus","clusterNetwork":"/etc/cni/net.d/87-other.conflist"}`, "10-enipool.conflist"},
			"warning   in /etc/cni/net.d 00-multus.conf comes first, and another is the cluster network of that Multus: only pods that ask for a second network of enipool get addresses of it. " +
				"If that is not wanted, make /etc/cni/net.d/10-enipool.conflist its clusterNetwork; enipool is installed here already, so this run goes on\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var files []string
			for _, f := range tt.files {
				files = append(files, install.ConfDir+"/"+f)
			}
			if diff := cmp.Diff(tt.want, texts(findConfigurations(newTree(t, files...), needs()))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPluginsThatARuntimeAppendsAreTold(t *testing.T) {
	if got := findMixedIn(newTree(t, "/etc/cni/net.d/enipool/", "/etc/cni/net.d/other/x.conf"), needs()); got != nil {
		t.Errorf("it says %s", texts(got))
	}
	got := texts(findMixedIn(newTree(t, "/etc/cni/net.d/enipool/x.conf"), needs()))
	if want := "warning   newer runtimes also call, after our plugins, those of the files in /etc/cni/net.d/enipool\n"; got != want {
		t.Errorf("it says %s", got)
	}
}

func TestServicesThatHandleLinksAreTold(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		needs func(n *Needs)
		want  string
	}{
		{"none", nil, func(n *Needs) { n.ENILinks = nil }, ""},
		{"NetworkManager, and links are named", []string{"/etc/NetworkManager/"}, func(*Needs) {}, ""},
		{"NetworkManager, and links are not named", []string{"/etc/NetworkManager/"}, func(n *Needs) { n.ENILinks = nil }, "warning   NetworkManager may configure"},
		{"a network for every link", []string{"/usr/lib/systemd/network/80-ec2.network"}, func(n *Needs) { n.ENILinks = nil },
			"warning   systemd-networkd with /usr/lib/systemd/network/80-ec2.network may configure"},
		{"files are left to a person", []string{"/etc/sysctl.d/", "/etc/NetworkManager/conf.d/99-enipool.conf"}, func(n *Needs) { n.Skipped = true },
			"warning   /etc/sysctl.d/99-zz-enipool.conf is missing, and is not written with --no-system-files: it is there so that `sysctl --system`"},
		{"files are left to a person who wrote them", []string{"/etc/sysctl.d/99-zz-enipool.conf"}, func(n *Needs) { n.Skipped = true }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := needs()
			tt.needs(&n)
			got := texts(findServices(newTree(t, tt.files...), n))
			if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") || strings.Count(got, "\n") > 1 {
				t.Errorf("it says %s", got)
			}
		})
	}
}

func TestTheServiceThatTakesPodsAddressesMustGo(t *testing.T) {
	tree := newTree(t, "/etc/systemd/system/timers.target.wants/")
	// The unit's file lies elsewhere on the node.
	err := os.Symlink("/usr/lib/systemd/system/nm-cloud-setup.timer", tree.Root+"/etc/systemd/system/timers.target.wants/nm-cloud-setup.timer")
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(findServices(tree, needs())); !strings.HasPrefix(got, "must fix  nm-cloud-setup is enabled") {
		t.Errorf("it says %s", got)
	}
}

func TestSettingsThatUndoOursAreTold(t *testing.T) {
	tree := newTree(t, "/etc/sysctl.conf=#net.ipv4.ip_forward=0\n; x = y\n net.ipv4.ip_forward = 0 \n",
		"/etc/sysctl.d/10-before.conf=net.ipv4.ip_forward=0\n", "/etc/sysctl.d/zz-last.conf=-net/ipv4/conf/eni*/rp_filter=2\nnet.ipv4.ip_forward=1\n",
		"/usr/lib/sysctl.d/zz.txt=net.ipv4.ip_forward=0\n",
		// A file of the same name in an earlier folder takes its place: that is how people switch it off.
		"/etc/sysctl.d/zz-vendor.conf=", "/usr/lib/sysctl.d/zz-vendor.conf=net.ipv4.ip_forward=0\n")
	want := `warning   /etc/sysctl.conf sets net.ipv4.ip_forward to 0 after /etc/sysctl.d/99-zz-enipool.conf has set it to 1; take it out there
warning   /etc/sysctl.d/zz-last.conf sets net.ipv4.conf.eni*.rp_filter to 2 after /etc/sysctl.d/99-zz-enipool.conf has set it to 1; take it out there
`
	if diff := cmp.Diff(want, texts(findOverrides(tree, needs()))); diff != "" {
		t.Error(diff)
	}
}

func TestThisKernelDoesWhatIsNeededAndNothingIsLeft(t *testing.T) {
	nettest.Need(t)
	n := needs()
	n.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
	before := state(t)
	want := `ok        the kernel makes veth pairs
ok        the kernel routes ipv4 by rules and tables
ok        the kernel routes ipv6 by rules and tables
ok        nftables does what is needed
`
	if diff := cmp.Diff(want, texts(tryKernel(n))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, state(t)); diff != "" {
		t.Errorf("the node is another one:\n%s", diff)
	}
}

func state(t *testing.T) string {
	return nettest.Run(t, "sh", "-c", "ip -o link; ip rule; ip -6 rule; ip route show table all; nft list ruleset; cat /proc/sys/net/ipv4/ip_forward")
}

func TestSettingsThatCanNotBeChangedAreAFault(t *testing.T) {
	nettest.Need(t)
	// As a container that is not privileged has it.
	if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount("/proc/sys", unix.MNT_DETACH)
	if err := unix.Mount("", "/proc/sys", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount /proc/sys: %v", err)
	}
	got := texts(tryKernel(needs()))
	if !strings.Contains(got, "must fix  the kernel's settings can't be changed: ") || !strings.Contains(got, "read-only file system; in a container mount") {
		t.Errorf("it says %s", got)
	}
}

func TestIPv6ThatIsOffIsAFaultIfItIsWanted(t *testing.T) {
	nettest.Need(t)
	nettest.Run(t, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
	defer nettest.Run(t, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
	n := needs()
	wrong := func(l install.Line) bool { return l.What == install.MustFix }
	if got := checkSysctls(n); slices.ContainsFunc(got, wrong) {
		t.Errorf("it says %s", texts(got))
	}
	n.Settings.Families = append(n.Settings.Families, eni.IPv6)
	if got := checkSysctls(n); !slices.ContainsFunc(got, wrong) {
		t.Errorf("it says %s", texts(got))
	}
}

func TestTheNodesOwnLinkIsNotAnENIsToLeaveAlone(t *testing.T) {
	nettest.Need(t)
	ns := nettest.NewNetns(t, "own")
	ns.Run(t, "sh", "-c", `ip link add eth0 type veth peer name eth1; ip link add ens9 type veth peer name ens8
for l in eth0 eth1 ens9 ens8; do ip link set $l up; done
ip addr add 10.0.0.1/24 dev eth0; ip route add default via 10.0.0.2; ip route add 10.9.0.0/16 dev eth1
ip -6 addr add fd00::1/64 dev ens9 nodad; ip -6 route add default via fd00::2`)
	var own []string
	if err := ns.Do(func() error { own = OwnLinks(); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ens9", "eth0"}, own); diff != "" {
		t.Error(diff)
	}
	for pattern, want := range map[string]string{
		"eth[1-9]*": "", "ens8": "", "e?h1.100": "",
		"eth*": "eth*: must not match eth0, which connects the node itself", "*": "*: must not match ens9, which connects the node itself",
		"": `"": must be a pattern`, "a b": `"a b": must be a pattern`, "a\nb": `"a\nb": must be a pattern`, "[!0]": `"[!0]": must be a pattern`,
		"eth[": "eth[: must not match",
	} {
		if got := WrongLinks([]string{"x", pattern}, own); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("of %q it says %s", pattern, got)
		}
	}
}

package dropin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// texts returns the wanted files without their first line.
func texts(n Node) map[string]string {
	list := map[string]string{}
	for _, f := range Files(n) {
		if f.Text != "" {
			list[f.Path] = strings.TrimPrefix(f.Text, header)
		}
	}
	return list
}

var full = Node{ENILinks: []string{"eth[1-9]*", "ens6"}, OwnLinks: []string{"eth0"}, IPv6: true, ConfDir: "/etc/cni/net.d", Agent: true}

func TestWhatTheFilesSay(t *testing.T) {
	want := map[string]string{
		"/etc/sysctl.d/99-zz-enipool.conf": `net/ipv4/ip_forward = 1
-net/ipv4/conf/eni*/rp_filter = 1
-net/ipv4/conf/eth0/rp_filter = 2
-net/ipv4/conf/eth[1-9]*/rp_filter = 2
-net/ipv4/conf/ens6/rp_filter = 2
-net/ipv6/conf/eth0/accept_ra = 2
-net/ipv6/conf/eth[1-9]*/accept_ra = 0
-net/ipv6/conf/ens6/accept_ra = 0
net/ipv6/conf/all/forwarding = 1
`,
		"/etc/NetworkManager/conf.d/99-enipool.conf": `[keyfile]
unmanaged-devices+=interface-name:eni*;interface-name:eth[1-9]*;interface-name:ens6
`,
		"/etc/systemd/network/05-enipool.network": `[Match]
Name=eni* eth[1-9]* ens6

[Link]
Unmanaged=yes
`,
		"/etc/systemd/networkd.conf.d/99-enipool.conf": `[Network]
ManageForeignRoutes=no
ManageForeignRoutingPolicyRules=no
`,
		"/etc/systemd/network/05-enipool.link": `[Match]
OriginalName=eni*

[Link]
MACAddressPolicy=none
`,
		"/etc/tmpfiles.d/enipool.conf": `r! /etc/cni/net.d/10-enipool.conflist
`,
	}
	if diff := cmp.Diff(want, texts(full)); diff != "" {
		t.Error(diff)
	}
}

func TestANodeOfWhichLittleIsKnownGetsLittle(t *testing.T) {
	got := texts(Node{ConfDir: "/etc/cni/net.d"})
	if want := "net/ipv4/ip_forward = 1\n-net/ipv4/conf/eni*/rp_filter = 1\n"; got["/etc/sysctl.d/99-zz-enipool.conf"] != want {
		t.Errorf("sysctls are\n%s", got["/etc/sysctl.d/99-zz-enipool.conf"])
	}
	// Nobody would put the network configuration back after a boot.
	if text, wanted := got["/etc/tmpfiles.d/enipool.conf"]; wanted {
		t.Errorf("a node without agent has\n%s", text)
	}
	if len(Files(Node{})) != len(Files(full)) {
		t.Error("uninstalling would not find all files")
	}
}

func TestEveryFileSaysWhyAndWhen(t *testing.T) {
	for _, f := range Files(full) {
		if !strings.HasPrefix(f.Text, header) || !strings.HasPrefix(f.Why, "so that ") || f.Effect == "" || !strings.HasPrefix(f.Needs, "/etc/") {
			t.Errorf("%+v", f)
		}
	}
}

// write puts the files of full below a folder.
func write(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, f := range Files(full) {
		path := filepath.Join(root, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func need(t *testing.T, program string) string {
	t.Helper()
	for _, name := range []string{program, "/lib/systemd/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed", program)
	return ""
}

func TestSysctlsAreAsPodsNeedThemAfterTheRealPrograms(t *testing.T) {
	nettest.Need(t)
	root := write(t)
	ours := filepath.Join(root, "/etc/sysctl.d/99-zz-enipool.conf")
	hard := filepath.Join(root, "hard.conf") // what hardening guides ask for
	err := os.WriteFile(hard, []byte("net.ipv4.ip_forward = 0\nnet.ipv4.conf.*.rp_filter = 1\nnet.ipv6.conf.all.forwarding = 0\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
	}{{"systemd-sysctl", []string{hard, ours}}, {"sysctl", []string{"-q", "-p", hard, ours}}} {
		t.Run(tt.name, func(t *testing.T) {
			program := need(t, tt.name)
			ns := nettest.NewNetns(t, tt.name)
			for _, link := range []string{"eni0123456789a", "eth0", "eth1", "ens6", "else"} {
				ns.Run(t, "ip", "link", "add", link, "type", "veth", "peer", "name", "p"+link)
			}
			_, _ = ns.Try(program, tt.args...) // sysctl fails for links that are not there
			got := ns.Run(t, "sh", "-c", "cd /proc/sys/net; grep . ipv4/ip_forward ipv4/conf/eni*/rp_filter ipv4/conf/e[tnl]*[0-9e]/rp_filter "+
				"ipv6/conf/all/forwarding ipv6/conf/e[tn]*[0-9]/accept_ra")
			want := `ipv4/ip_forward:1
ipv4/conf/eni0123456789a/rp_filter:1
ipv4/conf/else/rp_filter:1
ipv4/conf/ens6/rp_filter:2
ipv4/conf/eth0/rp_filter:2
ipv4/conf/eth1/rp_filter:2
ipv6/conf/all/forwarding:1
ipv6/conf/ens6/accept_ra:0
ipv6/conf/eth0/accept_ra:2
ipv6/conf/eth1/accept_ra:0
`
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheConfigurationGoesAtABootAndNotBefore(t *testing.T) {
	program := need(t, "systemd-tmpfiles")
	root := write(t)
	published := filepath.Join(root, "/etc/cni/net.d", install.ConflistName)
	other := filepath.Join(root, "/etc/cni/net.d/20-other.conflist")
	for _, path := range []string{published, other} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nettest.Run(t, program, "--root="+root, "--create", "--remove", "enipool.conf")
	if _, err := os.Stat(published); err != nil {
		t.Error(err)
	}
	nettest.Run(t, program, "--root="+root, "--create", "--remove", "--boot", "enipool.conf")
	if _, err := os.Stat(published); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

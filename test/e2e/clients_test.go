package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// chain makes a conflist of enipool and the plugins.
func (n *node) chain(cniVersion string, plugins ...string) string {
	list := append([]string{n.conf(cniVersion)}, plugins...)
	return fmt.Sprintf(`{"cniVersion":%q,"name":"pods","plugins":[%s]}`, cniVersion, strings.Join(list, ","))
}

func (n *node) libcni() *libcni.CNIConfig {
	return libcni.NewCNIConfigWithCacheDir(filepath.SplitList(cniPath(n.t)), n.t.TempDir(), nil)
}

func list(t testing.TB, text string) *libcni.NetworkConfigList {
	t.Helper()
	l, err := libcni.ConfListFromBytes([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return l
}

func TestAChainWithTheReferencePluginsInAllVersions(t *testing.T) {
	for _, v := range version.All.SupportedVersions() {
		t.Run(v, func(t *testing.T) {
			n := newNode(t, ipam.Settings{}, 2)
			ns := nettest.NewNetns(t, "pod")
			chain := []string{`{"type":"portmap","backend":"nftables","capabilities":{"portMappings":true}}`, `{"type":"tuning","sysctl":{"net.core.somaxconn":"500"}}`}
			if atLeast(t, v, "0.3.0") { // before that bandwidth does not exist
				chain = append(chain, `{"type":"bandwidth","capabilities":{"bandwidth":true}}`)
			}
			if !atLeast(t, v, "0.3.0") {
				chain = nil // nor does the chaining of results
			}
			l := list(t, n.chain(v, chain...))
			rt := &libcni.RuntimeConf{ContainerID: "pod", NetNS: ns.Path, IfName: "eth0",
				Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web"}},
				CapabilityArgs: map[string]any{
					"portMappings": []map[string]any{{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}},
					"bandwidth":    map[string]any{"ingressRate": 1000000, "ingressBurst": 1000000, "egressRate": 1000000, "egressBurst": 1000000},
				}}
			c := n.libcni()
			res, err := c.AddNetworkList(t.Context(), l, rt)
			if err != nil {
				t.Fatal(err)
			}
			got, err := current.NewResultFromResult(res)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.IPs) != 1 || got.IPs[0].Address.String() != "10.0.0.10/32" {
				t.Errorf("addresses %v", got.IPs)
			}
			if atLeast(t, v, "0.3.0") && (got.IPs[0].Interface == nil || got.Interfaces[*got.IPs[0].Interface].Name != "eth0") {
				t.Errorf("the address does not point at the pod's interface: %v", got)
			}
			if atLeast(t, v, "0.4.0") {
				if err := c.CheckNetworkList(t.Context(), l, rt); err != nil {
					t.Errorf("check: %v", err)
				}
			}
			if atLeast(t, v, "1.1.0") {
				if err := c.GetStatusNetworkList(t.Context(), l); err != nil {
					t.Errorf("status: %v", err)
				}
				if err := c.GCNetworkList(t.Context(), l, &libcni.GCArgs{}); err != nil {
					t.Errorf("gc: %v", err)
				}
			}
			for range 2 {
				if err := c.DelNetworkList(t.Context(), l, rt); err != nil {
					t.Errorf("del: %v", err)
				}
			}
		})
	}
}

func atLeast(t testing.TB, v, least string) bool {
	t.Helper()
	ok, err := version.GreaterThanOrEqualTo(v, least)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestCnitoolDrivesAllVerbs(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 2)
	ns := nettest.NewNetns(t, "pod")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "10-pods.conflist"), []byte(n.chain("1.1.0")), 0o600); err != nil {
		t.Fatal(err)
	}
	tool := func(verb string) string {
		cmd := exec.Command(filepath.Join(binDir(t), "cni", "cnitool"), verb, "pods", ns.Path)
		cmd.Env = append(os.Environ(), "NETCONFPATH="+dir, "CNI_PATH="+cniPath(t))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("cnitool %s: %v\n%s", verb, err, out)
		}
		return string(out)
	}
	if out := tool("add"); !strings.Contains(out, `"10.0.0.10/32"`) {
		t.Errorf("add printed\n%s", out)
	}
	for _, verb := range []string{"check", "status", "gc", "del", "del"} {
		tool(verb)
	}
}

func TestTheReferencePluginsTakeAddressesFromThePool(t *testing.T) {
	ipamConf := func(n *node) string {
		return fmt.Sprintf(`"ipam":{"type":"enipool","cachePath":%q,"waitForAddress":"0s"}`, n.Cache.Path)
	}
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		for _, tt := range []struct{ plugin, more, want string }{
			{"ptp", "", "10.0.0.10/24 10.0.1.10/24"},
			{"bridge", `,"bridge":"br0"`, "10.0.0.10/24 10.0.1.10/24"},
			{"macvlan", `,"master":"eth1","linkInContainer":false`, "10.0.1.10/24 10.0.1.11/24"}, // bound to the ENI of its master
		} {
			t.Run(tt.plugin+", routing "+routing.String(), func(t *testing.T) {
				n := newNode(t, ipam.Settings{Routing: routing}, 1, 2)
				t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "br0").Run() })
				l := list(t, fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":%q%s,%s}]}`, tt.plugin, tt.more, ipamConf(n)))
				c := n.libcni()
				var got []string
				for _, id := range []string{"a", "b"} {
					rt := &libcni.RuntimeConf{ContainerID: id, NetNS: nettest.NewNetns(t, id).Path, IfName: "eth0"}
					res, err := c.AddNetworkList(t.Context(), l, rt)
					if err != nil {
						t.Fatal(err)
					}
					r, err := current.NewResultFromResult(res)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, r.IPs[0].Address.String())
					if err := c.CheckNetworkList(t.Context(), l, rt); err != nil {
						t.Errorf("check: %v", err)
					}
				}
				if s := strings.Join(got, " "); s != tt.want {
					t.Errorf("addresses %s, want %s", s, tt.want)
				}
				wantRule := routing == ipam.Rule
				if rules := nettest.Run(t, "ip", "rule", "show", "priority", "1538"); strings.Contains(rules, "from 10.0.1.10 lookup 101") != wantRule {
					t.Errorf("rules %q", rules)
				}
				for _, id := range []string{"a", "b"} {
					rt := &libcni.RuntimeConf{ContainerID: id, NetNS: "/run/netns/" + id, IfName: "eth0"}
					if err := c.DelNetworkList(t.Context(), l, rt); err != nil {
						t.Errorf("del: %v", err)
					}
				}
			})
		}
	}
}

func TestChainedAfterAPluginWithoutIPAMItPutsTheAddressOnThatInterface(t *testing.T) {
	for _, tt := range []struct{ first, want string }{
		{`{"type":"macvlan","master":"eth1","ipam":{}}`, "10.0.1.10/24"}, // the ENI below it
		{`{"type":"bridge","bridge":"br0"}`, "10.0.0.10/24"},
	} {
		t.Run(tt.first, func(t *testing.T) {
			n := newNode(t, ipam.Settings{}, 1, 1)
			t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "br0").Run() })
			ns := nettest.NewNetns(t, "pod")
			l := list(t, fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","plugins":[%s,%s]}`, tt.first, n.conf("1.0.0")))
			c := n.libcni()
			rt := &libcni.RuntimeConf{ContainerID: "pod", NetNS: ns.Path, IfName: "eth0"}
			res, err := c.AddNetworkList(t.Context(), l, rt)
			if err != nil {
				t.Fatal(err)
			}
			r, err := current.NewResultFromResult(res)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.IPs) != 1 || r.IPs[0].Address.String() != tt.want || r.IPs[0].Interface == nil || r.Interfaces[*r.IPs[0].Interface].Sandbox != ns.Path {
				t.Errorf("result %v", r)
			}
			if out := ns.Run(t, "ip", "-o", "addr", "show", "dev", "eth0"); !strings.Contains(out, "inet "+tt.want) {
				t.Errorf("addresses in the pod:\n%s", out)
			}
			if out := ns.Run(t, "ip", "route", "show", "default"); !strings.Contains(out, "dev eth0 proto 69") {
				t.Errorf("default route in the pod: %q", out)
			}
			// The bridge plugin asks its ipam to CHECK even where it has none.
			err = c.CheckNetworkList(t.Context(), l, rt)
			if err != nil && !(strings.Contains(tt.first, "bridge") && err.Error() == "no plugin name provided") {
				t.Errorf("check: %v", err)
			}
			if err := c.DelNetworkList(t.Context(), l, rt); err != nil {
				t.Errorf("del: %v", err)
			}
		})
	}
}

func TestTheErrorObjectIsCompleteAndAlone(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 1)
	ns := nettest.NewNetns(t, "pod")
	for _, tt := range []struct {
		name string
		call call
		code int
	}{
		{"unknown command", call{command: "add", conf: n.conf("1.0.0")}, 4},
		{"bad container id", call{command: "ADD", id: "../x", netns: ns.Path, conf: n.conf("1.0.0")}, 4},
		{"bad JSON", call{command: "ADD", id: "a", netns: ns.Path, conf: `{`}, 6},
		{"no name", call{command: "ADD", id: "a", netns: ns.Path, conf: `{"cniVersion":"1.0.0","type":"enipool"}`}, 7},
		{"unknown version", call{command: "ADD", id: "a", netns: ns.Path, conf: n.conf("9.9.9")}, 1},
		{"wrong type", call{command: "ADD", id: "a", netns: ns.Path, conf: n.conf("0.4.0", `"mtu":"x"`)}, 7},
		{"the node's namespace", call{command: "ADD", id: "a", netns: "/proc/self/ns/net", conf: n.conf("1.0.0")}, 8},
		{"CHECK without a result", call{command: "CHECK", id: "a", netns: ns.Path, conf: n.conf("1.0.0")}, 7},
		{"CHECK of an old version", call{command: "CHECK", id: "a", netns: ns.Path, conf: n.conf("0.3.1")}, 1},
		{"STATUS of an old version", call{command: "STATUS", conf: n.conf("1.0.0")}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := n.run(tt.call)
			e := a.cniError(t)
			if _, err := version.NewResult(e.CNIVersion, []byte(`{"ip4":{"ip":"10.0.0.1/32"},"cniVersion":"`+e.CNIVersion+`"}`)); err != nil {
				t.Errorf("the error is in version %q, which nobody reads", e.CNIVersion)
			}
			if a.exit == 0 || e.Code != tt.code {
				t.Errorf("exit %d, %+v; want code %d", a.exit, e, tt.code)
			}
		})
	}
	if a := n.mustRun(call{command: "DEL", id: "a", netns: "/proc/self/ns/net", conf: n.conf("1.0.0")}); a.stdout != "" {
		t.Errorf("a DEL that succeeds prints %q", a.stdout)
	}
	var v struct{ SupportedVersions []string }
	if err := json.Unmarshal([]byte(n.mustRun(call{command: "VERSION"}).stdout), &v); err != nil || len(v.SupportedVersions) != 7 {
		t.Errorf("versions %v, %v", v, err)
	}
}

func TestTheLogIsReadableByItsOwnerOnly(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 1)
	ns := nettest.NewNetns(t, "pod")
	log := filepath.Join(t.TempDir(), "enipool.log")
	if err := os.WriteFile(log, nil, 0o666); err != nil { // made by somebody careless
		t.Fatal(err)
	}
	conf := n.conf("1.0.0", fmt.Sprintf(`"logFile":%q,"logLevel":"debug"`, log))
	n.mustRun(call{command: "ADD", id: "pod", netns: ns.Path, conf: conf})
	n.mustRun(call{command: "DEL", id: "pod", netns: ns.Path, conf: conf})
	info, err := os.Stat(log)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("log: %v, %v", info, err)
	}
}

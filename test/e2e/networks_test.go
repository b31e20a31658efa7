package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// netIface is an interface of pod a in a network of its own.
type netIface struct{ network, ifName string }

var (
	inPods    = netIface{"pods", "eth0"}
	inStorage = netIface{"storage", "net1"}
)

// cmd returns the call of the plugin for the attachment.
func (v *vpc) cmd(command string, at netIface, more ...string) *exec.Cmd {
	conf := strings.Replace(v.n.conf("1.0.0", more...), `"name":"pods"`, fmt.Sprintf(`"name":%q`, at.network), 1)
	return v.n.cmd(call{command: command, id: "a", ifName: at.ifName, netns: v.pods["a"].Path, conf: conf})
}

// call makes it and returns the result.
func (v *vpc) call(command string, at netIface, more ...string) string {
	v.t.Helper()
	cmd := v.cmd(command, at, more...)
	var out []byte
	err := v.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err != nil {
		v.t.Fatalf("%s %s: %v\n%s", command, at.network, err, out)
	}
	return string(out)
}

// reaches tests that the world reaches the addresses, and they the world.
func (v *vpc) reaches(when string, result string) {
	v.t.Helper()
	for _, addr := range addresses(v.t, result) {
		internet := internet4
		if strings.Contains(addr, ":") {
			internet = internet6
		}
		if out, err := v.internet.Try("ping", "-c", "1", "-W", "2", addr); err != nil {
			v.t.Errorf("%s %s can't be reached: %s\n%s", when, addr, out, v.podNetwork())
		}
		if out, err := v.pods["a"].Try("ping", "-c", "1", "-W", "2", "-I", addr, internet); err != nil {
			v.t.Errorf("%s %s reaches nobody: %s\n%s", when, addr, out, v.podNetwork())
		}
	}
}

func addresses(t *testing.T, result string) (list []string) {
	t.Helper()
	var res struct{ IPs []struct{ Address string } }
	if err := json.Unmarshal([]byte(result), &res); err != nil || len(res.IPs) == 0 {
		t.Fatalf("result: %v\n%s", err, result)
	}
	for _, ip := range res.IPs {
		list = append(list, strings.Split(ip.Address, "/")[0])
	}
	return list
}

// podNetwork is what the pod's kernel holds, as people see it.
func (v *vpc) podNetwork() string {
	text := ""
	for _, args := range [][]string{{"rule"}, {"route"}, {"-6", "rule"}, {"-6", "route"}} {
		text += v.pods["a"].Run(v.t, "ip", args...)
	}
	return tidyLines(text)
}

// tidyLines strips what differs between runs: white space, and the routes that the
// kernel makes by itself for each link that is up.
func tidyLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.Contains(line, "proto kernel") {
			lines = append(lines, strings.TrimSuffix(line, " pref medium"))
		}
	}
	return strings.Join(lines, "\n")
}

func TestAPodOfOneNetworkHasAsFewRoutesAsEver(t *testing.T) {
	v := newVPC(t, ipam.Settings{Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4, eni.IPv6}})
	want := `0: from all lookup local
32766: from all lookup main
32767: from all lookup default
default via 169.254.1.1 dev eth0 proto 69
169.254.1.1 dev eth0 proto 69 scope link
0: from all lookup local
32766: from all lookup main
default via fe80::1 dev eth0 proto 69 metric 1024`
	if diff := cmp.Diff(want, v.podNetwork()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTwoNetworksInAPodAreReachableWhicheverGoesFirst(t *testing.T) {
	for name, families := range map[string][]eni.Family{"IPv4": {eni.IPv4}, "IPv6": {eni.IPv6}, "dual-stack": {eni.IPv4, eni.IPv6}} {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, ipam.Settings{Firewall: ipam.Nftables, SNAT: true, Families: families})
			v.plugin("DEL", "b") // its addresses are for the second network
			v.plugin("DEL", "a")
			v.pods["a"].Run(t, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/default/rp_filter") // as systems have it
			empty := v.podNetwork()
			for _, order := range [][]netIface{{inPods, inStorage}, {inStorage, inPods}} {
				first := v.call("ADD", inPods)
				alone := v.podNetwork()
				second := v.call("ADD", inStorage)
				v.reaches("first network, beside a second,", first)
				v.reaches("second network", second)
				v.call("CHECK", inPods, `"prevResult":`+first)
				v.call("CHECK", inStorage, `"prevResult":`+second)
				if !strings.Contains(v.podNetwork(), strings.Split(alone, "\n")[3]) {
					t.Errorf("the first network's default route is gone:\n%s", v.podNetwork())
				}
				left := map[netIface]string{inPods: second, inStorage: first}[order[0]]
				v.call("DEL", order[0])
				v.reaches("the network that is left", left)
				for _, to := range map[bool][]string{false: {internet4}, true: {internet6}}[families[0] == eni.IPv6] {
					if out, err := v.pods["a"].Try("ping", "-c", "1", "-W", "2", to); err != nil {
						t.Errorf("the pod has lost its default route: %s\n%s", out, v.podNetwork())
					}
				}
				if order[0] == inStorage {
					if diff := cmp.Diff(alone, v.podNetwork()); diff != "" {
						t.Errorf("the second network has left something (-before +after):\n%s", diff)
					}
				}
				v.call("DEL", order[1])
				if diff := cmp.Diff(empty, v.podNetwork()); diff != "" {
					t.Errorf("something is left over (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// Runtimes attach the networks of a pod at the same time (containerd's go-cni).
func TestTwoNetworksAddedAtOnceBothWork(t *testing.T) {
	v := newVPC(t, ipam.Settings{Firewall: ipam.Nftables, SNAT: true, Families: []eni.Family{eni.IPv4, eni.IPv6}})
	for _, id := range []string{"a", "b"} {
		v.plugin("DEL", id)
	}
	empty := v.podNetwork()
	for range 60 {
		results := v.atOnce("ADD")
		v.reaches("added at once,", results[0])
		v.reaches("added at once,", results[1])
		if n := strings.Count(v.podNetwork(), "default via 169.254.1.1 dev eth0 proto 69\n") + strings.Count(v.podNetwork(), "default via 169.254.1.1 dev net1 proto 69\n"); n != 1 {
			t.Errorf("%d default routes in front:\n%s", n, v.podNetwork())
		}
		v.atOnce("DEL")
		if diff := cmp.Diff(empty, v.podNetwork()); diff != "" {
			t.Fatalf("something is left over (-before +after):\n%s", diff)
		}
		if t.Failed() {
			return
		}
	}
}

// atOnce makes the calls of both networks at the same time and returns the results.
func (v *vpc) atOnce(command string) [2]string {
	v.t.Helper()
	var out [2]string
	var errs [2]error
	var both sync.WaitGroup
	for i, at := range []netIface{inPods, inStorage} {
		cmd := v.cmd(command, at)
		both.Go(func() {
			errs[i] = v.node.Do(func() error {
				text, err := cmd.CombinedOutput()
				out[i] = string(text)
				return err
			})
		})
	}
	both.Wait()
	for i, err := range errs {
		if err != nil {
			v.t.Fatalf("%s at once: %v\n%s", command, err, out[i])
		}
	}
	return out
}

func TestCheckMissesTheRuleOfASecondNetwork(t *testing.T) {
	v := newVPC(t, ipam.Settings{Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4}})
	v.plugin("DEL", "b")
	result := v.call("ADD", inStorage)
	addr := addresses(t, result)[0]
	v.pods["a"].Run(t, "ip", "rule", "del", "from", addr)
	cmd := v.cmd("CHECK", inStorage, `"prevResult":`+result)
	var out []byte
	err := v.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err == nil || !strings.Contains(string(out), "pod rule 1538: from "+addr) {
		t.Errorf("CHECK: %v\n%s", err, out)
	}
	v.call("DEL", inStorage)
	v.plugin("ADD", "b")
}

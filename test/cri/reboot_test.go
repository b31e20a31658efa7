package cri

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// forgetWords leave of a node's network what a boot leaves: the links of the ENIs,
// the first one set up.
const forgetWords = `
nft flush ruleset
ip rule flush
ip rule add priority 32766 lookup main
ip rule add priority 32767 lookup default
for p in 69 70; do ip route flush proto $p table all 2>/dev/null || true; done
for dev in /sys/class/net/eth*; do
	[ $dev = /sys/class/net/eth0 ] || { ip addr flush dev ${dev##*/}; ip link set ${dev##*/} down; }
done
for file in /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/ip_forward; do echo 0 >$file; done`

// reboot ends all that runs on the node and starts containerd again, without an agent.
func (m *testNode) reboot() {
	m.t.Helper()
	m.Reboot()
	eventually(m.t, "the pods' links are gone", func() error {
		if links := m.Run("ip", "-br", "link"); strings.Contains(links, "eni") {
			return errors.New(links)
		}
		return nil
	})
	m.Run("sh", "-ec", forgetWords)
	m.dial()
}

func TestAfterARebootAllAddressesAreFreeAgainAndNoneIsHandedOutTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ cache, refusal string }{
		"run": {"", "node cache is missing"},
		"var": {"/var/lib/enipool/node.cache", "node cache is of another boot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegion(t, "reboot-"+name)
			m := newNode(r, "a", plan{limits: tiny, cache: c.cache})
			old := []*pod{m.run("old0"), m.run("old1", onPort(8080)), m.run("old2")}
			boot := m.Run("cat", "/proc/sys/kernel/random/boot_id")
			m.reboot()
			if m.Run("cat", "/proc/sys/kernel/random/boot_id") == boot {
				t.Fatal("the boot id is as before")
			}
			_, err := m.try("early")
			m.must(not(err, c.refusal))
			old[2].end() // needs no agent
			m.agent.Start()
			m.waitNetwork()
			fresh := m.runInENIOrder("new", 4)
			for i, p := range old[:2] {
				if is, err := p.status(); err != nil || is.Status.State != api.PodSandboxState_SANDBOX_NOTREADY {
					t.Errorf("%s after the reboot: %v, %v", p.config.Metadata.Name, is, err)
				}
				if fresh[i].ip != p.ip {
					t.Errorf("%s has %s, want %s, which was free", fresh[i].config.Metadata.Name, fresh[i].ip, p.ip)
				}
				p.end() // which is not to take the address from its new owner
			}
			for _, p := range fresh {
				if got := m.stateOf(p); got != "used" {
					t.Errorf("the address of %s is %s", p.config.Metadata.Name, got)
				}
				p.reach(fresh[0].ip.String(), fresh[3].ip.String(), internet)
			}
		})
	}
}

// runInENIOrder runs pods one after the other and wants each to have an address of
// the first ENI with a free one, where two fill an ENI. Of two that are made at once, the
// one that is ready first is first.
func (m *testNode) runInENIOrder(name string, n int) (pods []*pod) {
	m.t.Helper()
	r, err := m.pool()
	m.must(err)
	for i := range n {
		p := m.run(fmt.Sprintf("%s%d", name, i))
		if index, err := m.eniOf(p.ip); err != nil || index != r.ENIs[i/2].Index {
			m.t.Errorf("%s has an address of ENI %d, %v; want ENI %d", p.config.Metadata.Name, index, err, r.ENIs[i/2].Index)
		}
		pods = append(pods, p)
	}
	taken := map[netip.Addr]bool{}
	for _, p := range pods {
		if taken[p.ip] {
			m.t.Errorf("%s was handed out twice", p.ip)
		}
		taken[p.ip] = true
	}
	return pods
}

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// limited is what a pod with both limits and a host port asks for.
const limited = `{"bandwidth":{"ingressRate":80000000,"ingressBurst":8000000,"egressRate":80000000,"egressBurst":8000000},
	"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}`

// limits is what the kernel has of the limits of the pod with the link.
func (s *site) limits(link string) string {
	s.t.Helper()
	wait := "enb" + strings.TrimPrefix(link, "eni")
	return s.node.Run(s.t, "sh", "-c", fmt.Sprintf(`for dev in %s %s; do tc qdisc show dev $dev 2>&1; done; tc filter show dev %s ingress 2>&1 | grep -o "Egress Redirect.*"; ip -br link show %s | grep -o "[<,]UP[,>]"; true`, link, wait, link, wait))
}

// What others remove of a pod's limits is announced and put back from the record.
func TestTheAgentPutsBackALimitThatSomebodyRemoves(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "limits", limits: tiny})
	s.configure("pool.batch: 2", rarely)
	s.asks = map[string]string{"pod0": limited}
	agent := s.start()
	s.poolOf(2)
	s.add("pod0", "pod1")
	s.poolOf(4)
	s.rested()
	link := s.linkTo(s.addressOf("pod0"))
	want := s.limits(link)
	if n := strings.Count(want, "qdisc tbf 454e: root"); n != 2 || strings.Count(want, "Redirect to device enb") != 1 {
		t.Fatalf("the limits are\n%s", want)
	}
	for _, c := range []struct{ remove, reason string }{
		{"tc qdisc del dev LINK root", "qdisc tbf of link [0-9]+ removed"},
		{"tc qdisc del dev WAIT root", "qdisc tbf of link [0-9]+ removed"},
		{"tc qdisc replace dev WAIT root handle 9: pfifo", "qdisc tbf of link [0-9]+ removed"},
		{"tc filter del dev LINK ingress pref 65349", "filter u32 of link [0-9]+ removed"},
		{"tc qdisc del dev LINK clsact", "(qdisc clsact|filter u32) of link [0-9]+ removed"},
		{"ip link del WAIT", "link enb[0-9a-f]+ removed"},
		{"ip link set WAIT down", "link enb[0-9a-f]+ set down"},
	} {
		remove := strings.NewReplacer("LINK", link, "WAIT", "enb"+strings.TrimPrefix(link, "eni")).Replace(c.remove)
		s.rested() // the repair before took away a stale filter, of which the agent hears too
		repaired := strings.Count(agent.said(), "kernel repaired")
		s.node.Run(t, "sh", "-c", remove)
		s.eventually("after "+remove+" the limits are as before", func() error {
			if is := s.limits(link); is != want {
				return fmt.Errorf("was\n%s\nis\n%s", want, is)
			}
			if strings.Count(agent.said(), "kernel repaired") == repaired {
				return errors.New("nothing is told yet")
			}
			return nil
		})
		agent.says(`msg="kernel repaired" .*reason="` + c.reason)
	}
	s.rested()
	s.reach(internet4, "pod0", "pod1")
	if said, err := s.ctl("pool", "check"); err != nil {
		t.Errorf("pool check: %v\n%s", err, said)
	}
	s.del("pod0")
	if left := s.node.Run(t, "ip", "-br", "link"); strings.Contains(left, "enb") {
		t.Errorf("left over:\n%s", left)
	}
}

// A neighbour that gives a pod's link filters which links share keeps the agent from
// putting the pod's limit back. That is told, and nothing else waits for it.
func TestALimitThatCantBePutBackHoldsUpNoRepair(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "limit-stuck", limits: tiny})
	s.configure("pool.batch: 2", rarely)
	s.asks = map[string]string{"pod0": limited}
	s.start()
	s.poolOf(2)
	s.add("pod0", "pod1")
	s.poolOf(4)
	s.rested()
	link := s.linkTo(s.addressOf("pod0"))
	s.node.Run(t, "sh", "-c", strings.ReplaceAll("tc qdisc del dev LINK clsact; tc qdisc add dev LINK ingress_block 5 clsact", "LINK", link))
	s.eventually("the back-off has grown", func() error {
		if tries := s.comparisons("change"); tries < 5 {
			return fmt.Errorf("tried %d times", tries)
		}
		return nil
	})
	for range 3 {
		want := s.kernel()
		s.node.Run(t, "sh", "-c", "ip rule del priority 512; nft delete table inet enipool")
		s.sameKernel(want)
		s.eventually("the limit alone is told", func() error {
			st, err := s.status()
			if told := strings.Join(st.Backoff, "\n"); err != nil || !strings.Contains(told, "limits for ") || strings.Contains(told, "kernel for") || !strings.Contains(st.Problem, "limits of pod") {
				return fmt.Errorf("%v, back-off %q, problem %q", err, told, st.Problem)
			}
			return nil
		})
	}
	s.reach(internet4, "pod1")
	s.add("pod2")
	s.node.Run(t, "tc", "qdisc", "del", "dev", link, "clsact")
	s.eventually("the limit is put back", func() error {
		if is := s.limits(link); !strings.Contains(is, "Redirect to device enb") {
			return errors.New(is)
		}
		return nil
	})
	s.eventually("all is well", func() error {
		if st, err := s.status(); err != nil || st.Problem != "" {
			return fmt.Errorf("%v, problem %q", err, st.Problem)
		}
		return nil
	})
}

// A record that was half written when the power failed is no pod's, and goes: with the
// agent's first comparison, or with a GC where there is no agent.
func TestAHalfWrittenRecordIsTidiedUp(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"the agent", "GC"} {
		t.Run(by, func(t *testing.T) {
			s := newSite(t, plan{name: "half-" + by[:1], limits: tiny})
			s.configure("pool.batch: 2", rarely)
			s.asks = map[string]string{"pod0": limited}
			agent := s.start()
			s.poolOf(2)
			s.add("pod0")
			agent.terminate()
			half := filepath.Join(s.cache.Path+".pods", "eni0123456789a.new")
			s.must(os.WriteFile(half, []byte("enipool pod record 1\nowner pods"), 0o600))
			if by == "GC" {
				collect := s.call("GC", "pod0", 0)
				collect.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.1.0","name":"pods","type":"enipool","cachePath":%q,
					"cni.dev/valid-attachments":[{"containerID":"pod0","ifname":"eth0"}]}`, s.cache.Path))
				s.must(s.node.Do(collect.Run))
			} else {
				s.start()
			}
			s.eventually("the half record is gone", func() error {
				if _, err := os.Stat(half); !os.IsNotExist(err) {
					return fmt.Errorf("%s: %v", half, err)
				}
				return nil
			})
			if said, err := s.ctl("pool", "check"); err != nil {
				t.Errorf("pool check: %v\n%s", err, said)
			}
		})
	}
}

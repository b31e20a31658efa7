package e2e

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
)

// foreignPod is a pod of another plugin, with pings both ways for as long as it lives.
type foreignPod struct {
	addr  string
	eni   int
	ns    nettest.Netns
	pings []*exec.Cmd
}

// other is another main plugin, as its script lays it down in the kernel.
type other struct {
	s      *site
	script string
	pods   []*foreignPod
}

// run runs the plugin's script on the node.
func (o *other) run(args ...string) string {
	o.s.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", o.script))
	o.s.must(err)
	return strings.TrimSpace(o.s.node.Run(o.s.t, "sh", append([]string{"-c", string(text), o.script}, args...)...))
}

// add gives a pod of the plugin an address, and begins its pings.
func (o *other) add(addr netip.Addr, index int) {
	o.s.t.Helper()
	p := &foreignPod{addr: addr.String(), eni: index}
	ns := isolate.Namespace{Name: fmt.Sprintf("%s-other-%d", o.s.node.Name, len(o.pods))}
	o.s.must(ns.Create())
	o.s.t.Cleanup(func() { _ = ns.Remove() })
	p.ns = nettest.Netns{Namespace: ns, Path: ns.Path()}
	o.run("pod", p.addr, strconv.Itoa(index), p.ns.Path)
	for from, to := range map[nettest.Netns]string{p.ns: internet4, o.s.far: p.addr} {
		ping := exec.Command("ping", "-i", "0.02", to)
		said := &strings.Builder{}
		ping.Stdout, ping.Stderr = said, said
		o.s.must(from.Do(ping.Start))
		p.pings = append(p.pings, ping)
	}
	o.pods = append(o.pods, p)
}

// remove ends the pod as its runtime does, and tells if it missed a packet.
func (o *other) remove(p *foreignPod) {
	o.s.t.Helper()
	for _, ping := range p.pings {
		_ = ping.Process.Signal(syscall.SIGINT)
		_ = ping.Wait() // its words tell
		said := fmt.Sprint(ping.Stdout)
		m := regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`).FindStringSubmatch(said)
		if m == nil {
			o.s.t.Fatalf("ping said %s", said)
		}
		sent, _ := strconv.Atoi(m[1])
		if received, _ := strconv.Atoi(m[2]); received < sent-1 || received < 10 {
			o.s.t.Errorf("%s of %s: %d pings sent, %d answered", strings.Join(ping.Args, " "), p.addr, sent, received)
		}
	}
	o.run("gone", p.addr, strconv.Itoa(p.eni))
	o.s.must(p.ns.Remove())
}

// forget removes enipool from the node: what the cloud attached stays, configured as
// any plugin has it.
func (s *site) forget() {
	s.t.Helper()
	s.node.Run(s.t, "sh", "-c", `for p in 512 1536 1537; do while ip rule del priority $p 2>/dev/null; do :; done; done
for t in 100 101 102 103; do ip route flush table $t; done
nft delete table inet enipool`)
	s.must(os.RemoveAll(filepath.Dir(s.cache.Path)))
}

// A node that pods of another main plugin still live on: enipool serves the addresses
// that nobody has, theirs never, and each when its pod has gone. Their packets flow as if
// nothing had happened, and what the kernel has for them stays as it was.
func TestBesideLivePodsOfAnotherPlugin(t *testing.T) {
	t.Parallel()
	for script, conf := range map[string][]string{"aws-vpc-cni.sh": {"routing: map"}, "cilium-eni.sh": {"routing: rule"}} {
		t.Run(script, func(t *testing.T) {
			s := newSite(t, plan{name: "beside-" + script[:3], limits: tiny})
			s.configure(append(conf, "pool.batch: 2", "pool.minPool: 6", rarely)...)
			if said, code := s.once("--once"); code != 0 {
				t.Fatalf("exit %d\n%s", code, said)
			}
			before, err := s.view()
			s.must(err)
			s.forget()
			o := &other{s: s, script: script}
			o.run("node")
			for _, at := range []int{0, 2, 3} { // one on ENI 0, both of ENI 1
				o.add(before.Addresses[at].Addr, before.Addresses[at].ENI)
			}
			theirs := s.theirs(o)

			agent := s.start()
			s.eventually("what they have is held", func() error { return s.holds(o.pods...) })
			s.eventually("as many for pods as without them", func() error {
				if c, err := s.count(); err != nil || c.Total-c.Held-c.Used < 5 {
					return fmt.Errorf("%+v, %v", c, err)
				}
				return nil
			})
			ids := names("pod", 5) // all that the node can have beside them
			s.add(ids...)
			s.reach(internet4, ids...)
			err = s.try("ADD", "more", 0)
			if err == nil || !strings.Contains(err.Error(), "code 11: ") || !strings.Contains(err.Error(), "3 held by others (") {
				t.Errorf("an ADD without an address: %v", err)
			}
			if got := s.theirs(o); got != theirs {
				t.Errorf("the others' kernel state was\n%s\nand is\n%s", theirs, got)
			}

			for len(o.pods) > 0 {
				gone := o.pods[0]
				o.remove(gone)
				o.pods = o.pods[1:]
				s.eventually(gone.addr+" is the pool's", func() error { return s.holds(o.pods...) })
				id := "in-place-of-" + gone.addr
				s.add(id)
				if got := s.addressOf(id); got != gone.addr {
					t.Errorf("the only free address is %s, the pod has %s", gone.addr, got)
				}
				ids = append(ids, id)
				s.reach(internet4, ids...)
			}
			agent.says(`msg="address is held by others" address=`)
			agent.says(`msg=free .*reason="others hold them no more"`)
			s.del(append(ids, "more")...)
		})
	}
}

// holds returns an error unless the pool calls the addresses of the pods held, and no
// others.
func (s *site) holds(pods ...*foreignPod) error {
	cached, err := s.view()
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, a := range cached.HeldAddresses() {
		held[a.Addr.String()] = true
	}
	want := map[string]bool{}
	for _, p := range pods {
		want[p.addr] = true
	}
	if maps.Equal(held, want) {
		return nil
	}
	return fmt.Errorf("held %v, want %v", slices.Sorted(maps.Keys(held)), slices.Sorted(maps.Keys(want)))
}

// theirs is what the kernel has for the other plugin's pods.
func (s *site) theirs(o *other) string {
	s.t.Helper()
	var b strings.Builder
	all := s.node.Run(s.t, "ip", "rule") + s.node.Run(s.t, "ip", "route", "show", "table", "all")
	for line := range strings.Lines(all) {
		for _, p := range o.pods {
			if slices.Contains(strings.Fields(line), p.addr) {
				b.WriteString(line)
			}
		}
	}
	for _, p := range o.pods {
		b.WriteString(s.node.Run(s.t, "ip", "-br", "link", "show", "dev", o.run("link", p.addr)))
	}
	return b.String()
}

// The previous release's programs may meet a node cache in which addresses are held, after
// a downgrade of either: the plugin serves the others and its STATUS is well, the agent
// neither builds the cache anew nor gives the addresses back to the cloud.
func TestThePreviousReleaseLeavesHeldAddressesAlone(t *testing.T) {
	t.Parallel()
	old := previous(t)
	s := newSite(t, plan{name: "held-before", limits: tiny})
	s.configure("pool.batch: 2", "pool.minPool: 4", rarely)
	agent := s.start()
	s.poolOf(4)
	before, err := s.view()
	s.must(err)
	o := &other{s: s, script: "aws-vpc-cni.sh"}
	o.run("node")
	o.add(before.Addresses[1].Addr, before.Addresses[1].ENI)
	s.eventually("what they have is held", func() error { return s.holds(o.pods...) })
	agent.terminate()

	s.use = old
	status := s.call("STATUS", "status", 0)
	status.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.1.0","name":"pods","type":"enipool","cachePath":%q}`, s.cache.Path))
	var out []byte
	s.must(s.node.Do(func() (err error) { out, err = status.CombinedOutput(); return err }))
	if strings.Contains(string(out), `"code"`) {
		t.Errorf("STATUS of the previous plugin: %s", out)
	}
	s.add("a", "b") // all that is free
	for _, id := range []string{"a", "b"} {
		if got := s.addressOf(id); got == o.pods[0].addr {
			t.Errorf("the previous plugin gave %s to a pod", got)
		}
	}
	s.configure("pool.batch: 1", "pool.minPool: 0", "pool.minFree: 0%") // so that it gives back what it may
	agent = s.start()
	s.tickAfter()
	s.add("c")
	s.del("a", "b", "c")
	s.eventually("the rest goes back to the cloud", func() error {
		if c, err := s.count(); err != nil || c.Total > 2 {
			return fmt.Errorf("%+v, %v", c, err)
		}
		return nil
	})
	if strings.Contains(agent.said(), "node cache built") {
		t.Errorf("the previous agent built the node cache anew:\n%s", agent.said())
	}
	agent.terminate()

	s.use = programs{}
	s.must(s.holds(o.pods...))
	o.run("detached") // or a secondary address that was the primary one of an ENI is held
	s.configure("pool.batch: 2", "pool.minPool: 4", rarely)
	s.start()
	s.add("d", "e")
	s.must(s.holds(o.pods...))
	o.remove(o.pods[0])
	s.eventually("none is held", func() error { return s.holds() })
	s.del("d", "e", "status")
}

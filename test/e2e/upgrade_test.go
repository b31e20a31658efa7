package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
)

// programs are what runs as plugin and as agent; "" is what is built now.
type programs struct{ plugin, agent string }

var buildPrevious = sync.OnceValues(func() (programs, error) {
	dir, err := filepath.Abs("../../.build/previous")
	if err != nil {
		return programs{}, err
	}
	if err := build("../../scripts/previous.sh", dir); err != nil {
		return programs{}, err
	}
	return programs{plugin: filepath.Join(dir, "enipool"), agent: filepath.Join(dir, "enipool-agent")}, nil
})

// previous returns the programs of the previous release. A shallow clone can't build
// them: that is no success. Where the whole history is there and lacks the release, it
// is a failure.
func previous(t *testing.T) programs {
	t.Helper()
	p, err := buildPrevious()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skipf("UPGRADES ARE NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// drill is a node of the previous release with pods and traffic, whose programs are
// replaced one by one.
type drill struct {
	*site
	flows flows
	old   programs
	six   bool
	step  int
}

// newDrill makes a node on which the previous release has set up four pods on each of
// two ENIs. The lines are its configuration.
func newDrill(t *testing.T, name string, lines ...string) *drill {
	t.Helper()
	d := &drill{old: previous(t), six: slices.Contains(lines, "families: [ipv4, ipv6]")}
	d.site = newSite(t, plan{name: name, limits: eni.Limits{ENIs: 4, V4: 5, V6: 5}})
	d.flows.t, d.flows.told = t, d.fail
	d.configure(append([]string{"pool.batch: 4", "pool.minPool: 12"}, lines...)...)
	d.use = d.old
	d.start()
	d.poolOf(12 * len(d.families()))
	d.tickAfter()
	d.add(names("near", 4)...) // ENI 0
	d.add(names("far", 4)...)  // ENI 1
	return d
}

// families are those of the pods: whether it is IPv6.
func (d *drill) families() []bool { return slices.Compact([]bool{false, d.six}) }

// talk starts traffic on all the ways that packets of pods take.
func (d *drill) talk() {
	d.t.Helper()
	for _, six := range d.families() {
		internet, all := internet4, "0.0.0.0"
		if six {
			internet, all = internet6, "::"
		}
		port := 7000
		connect := func(from nettest.Netns, to string, in nettest.Netns, what string) {
			port++
			d.flows.connect(fmt.Sprintf("%s, %s", what, internet), from, join(to, port), in, join(all, port))
			d.flows.ping(fmt.Sprintf("%s, %s", what, internet), from, to)
		}
		for _, id := range []string{"near0", "far0"} {
			connect(d.pods[id], internet, d.far, id+" to the internet")
			connect(d.far, d.address(id, six), d.pods[id], "the internet to "+id)
			connect(d.node, d.address(id, six), d.pods[id], "the node to "+id)
		}
		connect(d.pods["near0"], d.address("far0", six), d.pods["far0"], "pod to pod of another ENI")
		connect(d.pods["far0"], d.address("near0", six), d.pods["near0"], "pod to pod of the first ENI")
		connect(d.pods["far1"], d.address("far2", six), d.pods["far2"], "pod to pod of the same ENI")
	}
	d.nodePorts()
}

// nodePorts lets the internet talk to pods by ports of the node, each by the ENI that
// is not the pod's.
func (d *drill) nodePorts() {
	d.t.Helper()
	cached, err := d.view()
	d.must(err)
	for i, id := range []string{"far3", "near3"} {
		nodeIP, podIP, port := cached.ENIs[i].V4.Primary.Addr(), d.address(id, false), fmt.Sprint(30001+i)
		d.node.Run(d.t, "nft", "add table ip kube; add chain ip kube pre { type nat hook prerouting priority dstnat; };"+
			"add rule ip kube pre ip daddr "+nodeIP.String()+" tcp dport "+port+" dnat to "+podIP+":80")
		d.flows.connect("the internet to "+id+" by a NodePort of "+cached.ENIs[i].Device, d.far, nodeIP.String()+":"+port, d.pods[id], "0.0.0.0:80")
	}
}

func join(addr string, port int) string {
	if strings.Contains(addr, ":") {
		addr = "[" + addr + "]"
	}
	return fmt.Sprintf("%s:%d", addr, port)
}

// setAgent replaces the agent that runs, setPlugin the plugin.
func (d *drill) setAgent(program string) {
	d.t.Helper()
	ended := d.agent
	ended.terminate()
	d.noErrors(ended)
	d.use.agent = program
	d.start()
	d.ready()
	d.tickAfter()
}

func (d *drill) setPlugin(program string) { d.use.plugin = program }

// noErrors wants that the agent could do all that it wanted to do, and could read what the other
// release's had written. A tick that fails half-way shows in nothing else, until what it left undone
// is needed, nor does a memory that is begun again.
func (d *drill) noErrors(p *process) {
	d.t.Helper()
	for line := range strings.Lines(p.said()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") && strings.Contains(line, "can't be read") {
			d.fail("an agent failed at something: %s", line)
		}
	}
}

// openPort starts a pod with a port of the node.
func (d *drill) openPort() {
	d.t.Helper()
	d.asks["port"] = fmt.Sprintf(`{"portMappings":[{"hostPort":%[1]s,"containerPort":80,"protocol":"tcp"},{"hostPort":%[1]s,"containerPort":80,"protocol":"udp"}]}`, hostPort)
	d.add("port")
	answerAll(d.t, d.pods["port"], "80")
}

const hostPort = "31000"

// portOpen wants that new connections to the port of the node reach the pod, from
// outside and from pods, by each ENI that stays: one without pods comes and goes with
// what the pool has to spare.
func (d *drill) portOpen(state string) {
	d.t.Helper()
	if d.asks["port"] == "" {
		return
	}
	cached, err := d.view()
	d.must(err)
	for _, nic := range cached.ENIs {
		if nic.Index > 0 && !slices.ContainsFunc(cached.Used(), func(a eni.Address) bool { return a.ENI == nic.Index }) {
			continue
		}
		to := nic.V4.Primary.Addr().String() + ":" + hostPort
		for _, from := range []nettest.Netns{d.far, d.pods["near0"], d.pods["far0"]} {
			for _, network := range []string{"tcp", "udp"} {
				if got := query(from, network, to); net.ParseIP(got) == nil {
					d.fail("%s: %s -> %s %s, which a pod has: %s", state, from.Name, network, to, got)
				}
			}
		}
	}
}

// mismatch is how long a new pod of a plugin that is not the agent's release may take
// until all reach it, on a machine however busy. Such pods work at once, but for those
// of the previous plugin under the present agent, which hears of them and repairs them.
const mismatch = 10 * time.Second

// works starts a pod and stops it, and wants that everybody reaches it and that no
// address is two pods'.
func (d *drill) works(state string) {
	d.t.Helper()
	d.flows.alive(state)
	d.step++
	id := fmt.Sprint("new", d.step)
	d.add(id)
	for _, six := range d.families() {
		addr, internet := d.address(id, six), map[bool]string{false: internet4, true: internet6}[six]
		d.reaches(state, d.pods[id], internet)
		for _, from := range []nettest.Netns{d.far, d.node, d.pods["near0"], d.pods["far0"]} {
			d.reaches(state, from, addr)
		}
	}
	d.portOpen(state)
	d.noAddressTwice(state)
	d.del(id)
}

func (d *drill) reaches(state string, from nettest.Netns, to string) {
	d.t.Helper()
	for start := time.Now(); ; {
		out, err := from.Try("ping", "-c", "1", "-W", "0.3", to)
		if err == nil {
			return
		}
		if time.Since(start) > mismatch {
			d.fail("%s: %s -> %s: %s", state, from.Name, to, out)
			return
		}
	}
}

// noAddressTwice looks for an address in two pods' namespaces.
func (d *drill) noAddressTwice(state string) {
	d.t.Helper()
	owner := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(d.pods)) {
		for _, six := range d.families() {
			addr := d.address(id, six)
			if other, taken := owner[addr]; taken {
				d.fail("%s: %s is that of %s and of %s", state, addr, other, id)
			}
			owner[addr] = id
		}
	}
}

// forgetWords take everything of ours off the node but pods' links.
const forgetWords = `
for f in -4 -6; do for p in 69 70; do
	while ip $f rule show | grep -q "proto $p"; do ip $f rule del protocol $p; done
	ip $f route flush proto $p table all 2>/dev/null
done; done
for t in enipool enipool-pods; do nft delete table inet $t 2>/dev/null; done
for save in iptables-save ip6tables-save; do for t in nat mangle raw filter; do
	cmd=${save%-save}; $save -t $t 2>/dev/null | sed -n "s/^-A \(.*ENIPO.*\)/$cmd -t $t -D \1/p" | sh 2>/dev/null
	$save -t $t 2>/dev/null | sed -n "s/^:\(ENIPO[^ ]*\).*/$cmd -t $t -F \1; $cmd -t $t -X \1/p" | sh 2>/dev/null
done; done
true`

// isFresh wants that nothing of the previous release is left in the kernel: what is
// there is what the agent makes where there was nothing.
func (d *drill) isFresh() {
	d.t.Helper()
	d.tickAfter()
	migrated := d.kernel()
	d.agent.terminate() // it would put all back at once
	d.node.Run(d.t, "sh", "-c", forgetWords)
	if d.kernel() == migrated {
		d.t.Fatal("nothing was forgotten")
	}
	d.start()
	d.ready()
	d.eventually("the kernel of a fresh node is that of an upgraded one", func() error {
		if diff := cmp.Diff(d.kernel(), migrated); diff != "" {
			return errors.New("-fresh +upgraded:\n" + diff)
		}
		return nil
	})
	for _, gone := range []string{"lookup main suppress_prefixlength", "/0xff0000", "& 0x00ff0000"} {
		if strings.Contains(migrated, gone) {
			d.fail("left over of the previous release: %s in\n%s", gone, migrated)
		}
	}
	for line := range strings.Lines(migrated) {
		if strings.Contains(line, "dev eni") && strings.Contains(line, "proto 69") {
			d.fail("left over of the previous release: route %s", line)
		}
	}
}

// TestPodsDoNotNoticeUpgradesAndDowngradesInAnyOrder goes through each step between
// two releases of plugin and agent once, with traffic on all ways.
func TestPodsDoNotNoticeUpgradesAndDowngradesInAnyOrder(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"map":      {"snat: true", "families: [ipv4, ipv6]"},
		"rule":     {"snat: true", "routing: rule"},
		"iptables": {"routing: rule", "firewall: iptables"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrill(t, "drill-"+name[:3], lines...)
			d.talk()
			d.works("both of the previous release")
			for _, step := range []struct {
				state  string
				change func()
			}{
				{"the agent is upgraded", func() { d.setAgent("") }},
				{"the plugin is upgraded after the agent", func() { d.setPlugin(""); d.openPort() }},
				{"the agent is downgraded", func() { d.setAgent(d.old.agent) }},
				{"the plugin is downgraded after the agent", func() { d.setPlugin(d.old.plugin) }},
				{"the plugin is upgraded", func() { d.setPlugin("") }},
				{"the agent is upgraded after the plugin", func() { d.setAgent("") }},
				{"the plugin is downgraded", func() { d.setPlugin(d.old.plugin) }},
				{"the agent is downgraded after the plugin", func() { d.setAgent(d.old.agent) }},
				{"both are upgraded", func() { d.setPlugin(""); d.setAgent("") }},
			} {
				step.change()
				d.works(step.state)
			}
			d.flows.unbroken()
			d.isFresh()
		})
	}
}

// An agent is often upgraded before the plugin, or the plugin is downgraded first: what
// the previous plugin sets up the agent hears of and puts where pods look for it.
func TestNewPodsOfThePreviousPluginWorkWithoutAPeriodicComparison(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "late", limits: eni.Limits{ENIs: 4, V4: 5, V6: 5}})
	s.configure("pool.batch: 4", "pool.minPool: 12", "families: [ipv4, ipv6]", "resync: 1h")
	d := &drill{site: s, old: previous(t), six: true}
	d.start()
	d.poolOf(24)
	d.ready()
	d.add(names("near", 4)...) // ENI 0
	d.add("far0")              // ENI 1
	d.setPlugin(d.old.plugin)
	d.add("late")
	for _, six := range d.families() {
		for _, from := range []string{"near0", "far0"} {
			d.reaches("a pod of the previous plugin", d.pods[from], d.address("late", six))
		}
	}
	d.use.plugin = ""
	d.del("late") // by the present plugin, what the previous one set up
}

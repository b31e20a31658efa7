package cri

import (
	"errors"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// What pods leave on a node, printed a line each. The links of ENIs come and go with
// the pool; what else there is of ENIs and of the agent is compared by enipoolctl.
const (
	networkTraces = `
ip -br link | awk '{print "link", $1}' | grep -v "^link eth"
for file in /run/netns/* /var/lib/cni/*/* %CACHE%.waiters/* %CACHE%.queue/*; do [ ! -e $file ] || echo "file $file"; done
iptables-save | grep -e CNI-DN- -e CNI-SN- | sed "s/^/iptables /"
ip6tables-save | grep -e CNI-DN- -e CNI-SN- | sed "s/^/ip6tables /"
true`

	// But for the cgroup that holds all of those of containers.
	runtimeTraces = `
awk '{print "mount", $5}' /proc/self/mountinfo | grep -v /boot_id
find /sys/fs/cgroup -type d | grep -v "/k8s.io$" | sed "s/^/cgroup /"
for file in /run/containerd/io.containerd.*/k8s.io/* /run/containerd/io.containerd.grpc.v1.cri/*/*; do
	[ ! -e $file ] || echo "file $file"
done
for p in /proc/[0-9]*; do read -r name 2>/dev/null <$p/comm || continue; echo process $name; done
true`
)

// traces returns them as sorted text.
func (m *testNode) traces(words string) string {
	m.t.Helper()
	out := m.Run("sh", "-c", strings.ReplaceAll(words, "%CACHE%", m.cachePath()))
	return strings.Join(slices.Sorted(strings.Lines(out)), "")
}

// addressWords print all that the node's kernel knows of addresses but the packet
// filter, which knows those of the pool.
const addressWords = `ip rule; ip route show table all; ip neigh; nft list ruleset | sed "/^table inet enipool /,/^}/d"`

// mentions returns the lines that have an address that was a pod's.
func (m *testNode) mentions() string {
	m.t.Helper()
	var found strings.Builder
	for line := range strings.Lines(m.Run("sh", "-c", addressWords)) {
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\\/,:", r) }) {
			for a := range m.had {
				if word == a.String() {
					found.WriteString(line)
				}
			}
		}
	}
	return found.String()
}

// nothingLeft waits until a node without pods looks as if there had never been any.
func (m *testNode) nothingLeft() {
	m.t.Helper()
	eventually(m.t, "node "+m.Name+" is without traces of pods", func() error {
		for words, before := range m.before {
			if diff := cmp.Diff(before, m.traces(words)); diff != "" {
				return errors.New("-before +after:\n" + diff)
			}
		}
		if found := m.mentions(); found != "" {
			return errors.New("the kernel still has:\n" + found)
		}
		if n := m.count()["used"]; n > 0 {
			shown, _ := m.ctl("pool", "show", "--output=wide")
			return errors.New("addresses are still used:\n" + shown)
		}
		_, err := m.ctl("pool", "check")
		return err
	})
}

// leavesNothing has the node looked at when the test is over.
func (m *testNode) leavesNothing() {
	m.before = map[string]string{networkTraces: m.traces(networkTraces), runtimeTraces: m.traces(runtimeTraces)}
	m.t.Cleanup(m.end)
}

// end removes the pods that are left, and looks for what they leave.
func (m *testNode) end() {
	m.t.Helper()
	if m.t.Failed() {
		return // what is left then is of no interest
	}
	for _, p := range m.pods {
		p.end()
	}
	m.agent.Start() // a test may have stopped it
	m.agent.Stop()
	m.nothingLeft()
}

// close lets go of a node whose test is over. Of a failed one it shows what the
// plugin said.
func (m *testNode) close() {
	m.conn.Close()
	if log, err := m.Try("tail", "-n", "40", "/var/log/enipool.log"); m.t.Failed() && err == nil {
		m.t.Logf("the plugin said on node %s:\n%s", m.Name, log)
	}
}

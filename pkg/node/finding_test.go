package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestOnlyWhatBothLooksFindOfOnePodCounts(t *testing.T) {
	const pod, dev = "10.0.0.21", "eni0123456789a"
	lacks := func(since time.Duration) finding {
		return finding{line: "lacks; by 12:00", what: "lacks", subject: pod, since: since}
	}
	at := func(since time.Duration) map[string]time.Duration {
		return map[string]time.Duration{pod: since, dev: since}
	}
	for name, tt := range map[string]struct {
		found         finding
		was, is, next map[string]time.Duration // before and after the first look, and during the second
		again         finding
		want          bool
	}{
		"of no pod":                         {finding{what: "a"}, nil, nil, nil, finding{what: "a"}, true},
		"of no pod, and only once":          {finding{what: "a"}, nil, nil, nil, finding{what: "b"}, false},
		"of a pod that stays":               {lacks(0), at(5), at(5), at(5), lacks(0), true},
		"of an address that changed":        {lacks(0), at(5), at(6), at(6), lacks(0), false},
		"of the next pod":                   {lacks(0), at(5), at(5), at(6), lacks(0), false},
		"of a pod that came during a look":  {finding{what: "a", subject: dev}, nil, at(5), at(5), finding{what: "a", subject: dev}, false},
		"of a pod that went during a look":  {finding{what: "a", subject: dev}, at(5), nil, nil, finding{what: "a", subject: dev}, false},
		"by a state that is older":          {lacks(4), at(5), at(5), at(5), lacks(4), false},
		"of a link that no pod of ours has": {finding{what: "a", subject: "eni9"}, at(5), at(5), at(5), finding{what: "a", subject: "eni9"}, true},
	} {
		first := stable([]finding{tt.found}, tt.was, tt.is)
		second := stable([]finding{tt.again}, tt.next, tt.next)
		if got := len(confirmFindings(first, second)) == 1; got != tt.want {
			t.Errorf("%s: told %t, want %t", name, got, tt.want)
		}
	}
}

// What a plugin is in the middle of is no difference, whatever it looks like.
func TestCheckTellsNothingOfWhatIsUnderWay(t *testing.T) {
	for name, tt := range map[string]struct{ begun, done string }{
		"a pod is added":                 {"ip route flush table 100", "ip route add 10.0.0.21 dev DEV table 100 proto 70 scope link"},
		"a pod is taken down":            {"ip link del DEV", ""},
		"a pod's record is written last": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, dev := withPod(t)
			run := func(words string) { nettest.Run(t, "sh", "-c", strings.ReplaceAll(words, "DEV", dev)) }
			run(tt.begun)
			release := func() {
				err := n.Cache.Update(t.Context(), func(s *ipam.State) error { s.FreeIf(func(eni.Address) bool { return true }, time.Hour); return nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.begun == "" {
				release()
			}
			looked := false
			lines, err := n.lookAgain(t.Context(), 1, func() error {
				looked = true
				if run(tt.done); tt.done == "" && tt.begun != "" {
					release()
				}
				if tt.begun == "" {
					run("ip link del DEV")
				}
				return nil
			})
			if err != nil || len(lines) > 0 || !looked {
				t.Errorf("told %q, %v; looked again: %t", lines, err, looked)
			}
		})
	}
}

// On a node whose processors have much to do an agent may need several looks from the kernel to the node cache. What lasts is told.
func TestCheckWaitsForAnAgentAsLongAsSomethingDiffers(t *testing.T) {
	for done, want := range map[int]int{3: 3, agentLooks + 1: agentLooks} {
		t.Run(fmt.Sprint("put right after ", done), func(t *testing.T) {
			n, dev := withPod(t)
			nettest.Run(t, "ip", "route", "flush", "table", "100")
			looks := 0
			lines, err := n.lookAgain(t.Context(), agentLooks, func() error {
				if looks++; looks == done {
					nettest.Run(t, "ip", "route", "add", "10.0.0.21", "dev", dev, "table", "100", "proto", "70", "scope", "link")
				}
				return nil
			})
			if err != nil || looks != want || (len(lines) > 0) != (done > agentLooks) {
				t.Errorf("told %q after %d looks, %v", lines, looks, err)
			}
		})
	}
}

// A rebuilt node state knows of a pod only the link by which it was found.
func TestAPodOfARebuiltCacheWhoseNamespaceIsGoneIsTold(t *testing.T) {
	n, dev := withPod(t)
	err := n.Cache.Update(t.Context(), func(s *ipam.State) error {
		s.FreeIf(func(eni.Address) bool { return true }, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var state *ipam.State
	if err := n.Cache.View(t.Context(), func(s *ipam.State) error { state = s.Clone(); return nil }); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(state.Addresses, func(a eni.Address) bool { return a.Addr.String() == "10.0.0.21" })
	state.Addresses[at].State = eni.Used
	state.Addresses[at].Owner = &eni.Owner{Key: eni.Key{Network: "pods", Container: "web", IfName: "eth0"}, Namespace: "default", Pod: "web"}
	n.put(t, state)
	if netconf.HostDevice(state.Addresses[at].Owner.Key) != dev {
		t.Fatal("it is another pod")
	}
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("while the pod lives: %q, %v", lines, err)
	}
	nettest.Run(t, "ip", "link", "del", dev)
	want := "10.0.0.21 of default/web: its link " + dev + " is gone, and the node cache does not name its namespace; `enipoolctl pool reclaim` frees it"
	if lines, err := n.Check(t.Context()); err != nil || len(lines) != 1 || lines[0] != want {
		t.Errorf("%q, %v; want %q", lines, err, want)
	}
}

// Somebody detached an ENI, or an agent was ended while it did.
func TestAnENIWithoutALinkIsToldAndTheRestCompared(t *testing.T) {
	n, state := newNode(t, 3)
	n.put(t, state)
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "ip", "link", "set", "eth2", "name", "gone")
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "set", "gone", "name", "eth2") })
	nettest.Run(t, "ip", "rule", "del", "priority", "512")
	lines, err := n.Check(t.Context())
	for _, want := range []string{"must fix: link eth2 of the ENI eni-eth2 is missing on this node: the ENI is detached, its driver lost the device, or the link has another name; attach it again and run `enipoolctl pool load`, or take it out of the inventory for that",
		"kernel lacks rule 512: "} {
		if err != nil || !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("check says %q, %v; want %s", lines, err, want)
		}
	}
}

// The kernel forgets an ENI before the cloud deletes it, which takes a while, and the node state
// comes last.
func TestAnENIThatAnAgentDeletesIsNoDifference(t *testing.T) {
	n, state := newNode(t, 3)
	state.Addresses[2].State = eni.Releasing
	n.put(t, state)
	n.Keeper = "the agent puts it right"
	agrees := func(when string) {
		t.Helper()
		if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
			t.Errorf("%s: %q, %v", when, lines, err)
		}
	}
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	agrees("before the kernel forgets it")
	if _, err := n.Sync(t.Context(), []string{"eni-eth2"}, nil); err != nil {
		t.Fatal(err)
	}
	agrees("when the kernel has forgotten it")
	nettest.Run(t, "ip", "link", "set", "eth2", "name", "gone")
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "set", "gone", "name", "eth2") })
	agrees("when the cloud has deleted it")
	nettest.Run(t, "ip", "rule", "del", "priority", "512")
	if lines, err := n.Check(t.Context()); err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "kernel lacks rule 512: ") {
		t.Errorf("what is missing beside it: %q, %v", lines, err)
	}
}

package node

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/events"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// watched is a watch that hears what the test says, and a node state with a pod that came an
// hour after boot, two minutes ago.
type watched struct {
	*Watch
	began time.Time
	state *ipam.State
}

func watchInTest(t *testing.T) *watched {
	owner := &eni.Owner{Key: eni.Key{Network: "pods", Container: "web", IfName: "eth0"}}
	w := &watched{began: time.Now(), state: &ipam.State{Addresses: []eni.Address{
		{Addr: netip.MustParseAddr("10.0.0.9"), State: eni.Used, Owner: owner, Since: time.Hour}}}}
	w.Watch = newWatch(fixed(w.state), func() time.Duration { return time.Hour + 2*time.Minute + time.Since(w.began) })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.send(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	return w
}

// within counts the faults that are sent in that time.
func (w *watched) within(d time.Duration) (n int) {
	for end := time.After(d); ; {
		select {
		case <-w.Faults():
			n++
		case <-end:
			return n
		}
	}
}

// compared is a comparison of the kernel that finds nothing to do.
func (w *watched) compared(t *testing.T) {
	t.Helper()
	if _, err := w.beginComparison(t.Context(), fixed(w.state), true); err != nil {
		t.Fatal(err)
	}
	w.endComparison()
}

var ruleGone = events.Event{Kind: events.Rule, Priority: 512, Protocol: netconf.PodsProtocol, Gone: true, Table: 100}

// routeOf is the host route of the node state's pod, or that it is gone.
func routeOf(addr string, gone bool) events.Event {
	return events.Event{Kind: events.Route, Prefix: netip.MustParsePrefix(addr + "/32"), Table: 100, Protocol: netconf.PodsProtocol, Unicast: true, Gone: gone}
}

func TestAFaultIsSentAtOnceAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInTest(t)
		w.note(ruleGone)
		if n := w.within(100 * time.Millisecond); n != 1 {
			t.Errorf("sent %d times within 100 ms", n)
		}
		w.compared(t)
		if cause := w.Cause(); cause != "rule 512: from all lookup 100 removed" || w.Cause() != "" {
			t.Errorf("cause %q", cause)
		}
		if n := w.within(time.Hour); n != 0 {
			t.Errorf("after the comparison: sent %d times", n)
		}
	})
}

func TestWhatAPodNeedsIsMissedOnlyWhileThePodStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			happens func(w *watched)
			want    int
		}{
			"the pod stays":      {func(w *watched) { w.note(routeOf("10.0.0.9", true)) }, 1},
			"the pod goes":       {func(w *watched) { w.note(routeOf("10.0.0.9", true)); w.state.Addresses[0].State = eni.Cooling }, 0},
			"no pod's":           {func(w *watched) { w.note(routeOf("10.0.0.8", true)) }, 0},
			"it comes again":     {func(w *watched) { w.note(routeOf("10.0.0.9", true)); w.note(routeOf("10.0.0.9", false)) }, 0},
			"another comes":      {func(w *watched) { w.note(routeOf("10.0.0.9", true)); w.note(routeOf("10.0.0.8", false)) }, 1},
			"the next pod comes": {func(w *watched) { w.note(routeOf("10.0.0.9", true)); w.state.Addresses[0].Since = w.now() + 1 }, 0},
			"its link goes": {func(w *watched) {
				w.note(events.Event{Kind: events.Link, Gone: true, Name: netconf.HostDevice(w.state.Addresses[0].Owner.Key)})
			}, 1},
		} {
			w := watchInTest(t)
			tt.happens(w)
			if n := w.within(pluginTime - time.Millisecond); n != 0 {
				t.Errorf("%s: sent before a plugin could be done", name)
			}
			if n := w.within(900*time.Millisecond - pluginTime); n != tt.want {
				t.Errorf("%s: sent %d times within 0.9 s, want %d", name, n, tt.want)
			}
		}
	})
}

func TestFaultsWithoutEndCostABoundedNumberOfComparisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInTest(t)
		n := 0
		for range 60_000 { // a minute
			w.note(ruleGone)
			w.note(events.Event{Kind: events.Link, Gone: true, Name: netconf.HostDevice(w.state.Addresses[0].Owner.Key)})
			if k := w.within(time.Millisecond); k > 0 {
				w.compared(t)
				n += k
			}
		}
		if n < 20 || n > burst+60+1 {
			t.Errorf("%d comparisons in a minute", n)
		}
		w.within(time.Minute)
		w.compared(t)
		w.note(ruleGone)
		if n := w.within(100 * time.Millisecond); n != 1 {
			t.Errorf("a minute later a fault is sent %d times within 100 ms", n)
		}
	})
}

func TestAFloodOfSuspectsIsOneFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInTest(t)
		addr := netip.MustParseAddr("10.1.0.0")
		for range 3 * mostSuspects {
			w.note(routeOf(addr.String(), true))
			addr = addr.Next()
		}
		if len(w.suspects) > mostSuspects {
			t.Errorf("%d suspects are kept", len(w.suspects))
		}
		if n := w.within(100 * time.Millisecond); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// heardNode is newNode whose watch hears the kernel.
func heardNode(t *testing.T) Node {
	n, state := newNode(t, 2)
	n.put(t, state)
	n.hear(t)
	return n
}

// hear gives the node a watch that hears the kernel.
func (n *Node) hear(t *testing.T) {
	t.Helper()
	var err error
	if n.Watch, err = NewWatch(n.Cache, nil, slog.Default()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Watch.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What the agent changes itself is behind it when it has compared the last time.
func TestOwnChangesAreNoFaultAndThoseOfOthersAre(t *testing.T) {
	n := heardNode(t)
	if lines, err := n.Sync(t.Context(), nil, nil); err != nil || len(lines) == 0 {
		t.Fatalf("%q, %v; want changes", lines, err)
	}
	select {
	case <-n.Watch.Faults():
		t.Errorf("the agent's own changes are a fault: %q", n.Watch.cause)
	case <-time.After(pluginTime + 200*time.Millisecond):
	}
	for _, remove := range []string{"ip rule del priority 512", "nft flush ruleset", "ip link set eth1 down"} {
		nettest.Run(t, "sh", "-c", remove)
		select {
		case <-n.Watch.Faults():
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing is heard of %s", remove)
		}
		if lines, err := n.Sync(t.Context(), nil, nil); err != nil || len(lines) == 0 || n.Watch.Cause() == "" {
			t.Errorf("after %s: %q, %v", remove, lines, err)
		}
	}
}

// What is switched back on a pod's link is heard: rp_filter by its own announcement,
// IPv6 by the first route that it brings.
func TestSettingsOfAPodsLinkAreHeardAndPutBack(t *testing.T) {
	n, dev := withPod(t)
	n.hear(t)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	for key, was := range map[string]string{"net/ipv4/conf/" + dev + "/rp_filter": "1", "net/ipv4/conf/" + dev + "/forwarding": "1", "net/ipv4/conf/eth1/forwarding": "1",
		"net/ipv6/conf/" + dev + "/disable_ipv6": "1"} {
		nettest.Run(t, "sh", "-c", "echo 0 > /proc/sys/"+key)
		select {
		case <-n.Watch.Faults():
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing is heard of %s=0", key)
		}
		if lines, err := n.Sync(t.Context(), nil, nil); err != nil || !strings.Contains(strings.Join(lines, "\n"), "sysctl "+key+"="+was) {
			t.Errorf("%s: %q, %v", key, lines, err)
		}
	}
}

// What is added for a larger pool leaves what others did wrong for the next comparison.
func TestAFaultThatGrowingDoesNotRepairIsStillSent(t *testing.T) {
	n := heardNode(t)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "sh", "-c", "ip rule add from 10.9.9.9 lookup 101 priority 1537 protocol 69; ip rule del priority 512")
	var next *ipam.State
	if err := n.Cache.View(t.Context(), func(s *ipam.State) error { next = s; return nil }); err != nil {
		t.Fatal(err)
	}
	if lines, err := n.Grow(t.Context(), next); err != nil || !strings.Contains(strings.Join(lines, "\n"), "rule 512") {
		t.Errorf("%q, %v", lines, err)
	}
	select {
	case <-n.Watch.Faults():
	case <-time.After(20 * time.Second):
		t.Fatal("the fault is forgotten")
	}
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	if have := kernel(t); strings.Contains(have, "10.9.9.9") {
		t.Errorf("a rule that nobody wants is there:\n%s", have)
	}
}

package node

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/podrecord"
)

// withLimitedPod is withPod with limits both ways.
func withLimitedPod(t *testing.T) (n Node, pod, wait string) {
	t.Helper()
	n, pod = withPod(t)
	var owner eni.Owner
	if err := n.Cache.View(t.Context(), func(s *ipam.State) error { owner = *s.Used()[0].Owner; return nil }); err != nil {
		t.Fatal(err)
	}
	limit := netconf.Limit{Rate: 8e6, Burst: 8e5}
	record := podrecord.Record{Key: owner.Key, Pod: owner.PodName(), Extras: netconf.Extras{Limits: netconf.Limits{Ingress: limit, Egress: limit}}}
	if err := podrecord.Beside(n.Cache.Path).Write(record); err != nil {
		t.Fatal(err)
	}
	h, err := host.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if err := h.SetLimits(limitOf(record)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.ClearLimits(netconf.LimitDevice(owner.Key)) })
	if lines, err := n.Sync(t.Context(), nil, nil); err != nil || len(lines) > 0 {
		t.Fatalf("%q, %v; want nothing to do", lines, err)
	}
	return n, pod, netconf.LimitDevice(owner.Key)
}

// heard waits for the next fault.
func (n Node) heard(t *testing.T, what string) {
	t.Helper()
	select {
	case <-n.Watch.Faults():
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing is heard of %s", what)
	}
}

// A link whose filters are a block that links share takes no filter of ours. That is told
// of the pod, and all else is repaired; the next fault is heard, and the old one not again.
func TestALimitThatCantBePutBackIsToldAndTheRestRepaired(t *testing.T) {
	n, pod, _ := withLimitedPod(t)
	n.hear(t)
	spoil := "tc qdisc del dev " + pod + " clsact; tc qdisc add dev " + pod + " ingress_block 5 clsact"
	nettest.Run(t, "sh", "-c", spoil)
	for try := range 2 {
		n.heard(t, spoil)
		lines, err := n.Sync(t.Context(), nil, nil)
		if !netconf.OnlyLimits(err) || !strings.Contains(err.Error(), "tc qdisc del dev "+pod+" clsact") {
			t.Fatalf("%q, %v; want an error about the pod's limits that says what to do", lines, err)
		}
		if have := kernel(t); !strings.Contains(have, "512:") {
			t.Errorf("try %d: rule 512 is not there:\n%s", try, have)
		}
		select {
		case <-n.Watch.Faults():
			t.Errorf("what could not be put back is a new fault: %q", n.Watch.cause)
		case <-time.After(pluginTime + 200*time.Millisecond):
		}
		nettest.Run(t, "ip", "rule", "del", "priority", "512")
	}
	n.heard(t, "rule 512")
	nettest.Run(t, "tc", "qdisc", "del", "dev", pod, "clsact")
	lines, err := n.Sync(t.Context(), nil, nil)
	if all := strings.Join(lines, "\n"); err != nil || !strings.Contains(all, "rule 512") || !strings.Contains(all, "limit default/web") {
		t.Errorf("%q, %v; want the rule and the limit", lines, err)
	}
}

// Programs that manage all links of a node set down what they don't know: what the pod
// sends waits on that link for ever.
func TestTheLinkOfALimitThatIsSetDownIsHeardAndSetUp(t *testing.T) {
	n, pod, wait := withLimitedPod(t)
	n.hear(t)
	nettest.Run(t, "ip", "link", "set", wait, "down")
	if found, err := n.Check(t.Context()); err != nil || !strings.Contains(strings.Join(found, "\n"), "link "+wait+" is down") {
		t.Errorf("%q, %v; want the link named", found, err)
	}
	n.heard(t, "the link that is down")
	lines, err := n.Sync(t.Context(), nil, nil)
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "limit default/web: link "+wait+" is down") {
		t.Errorf("%q, %v; want the link named", lines, err)
	}
	if have := nettest.Run(t, "ip", "-br", "link", "show", wait); !strings.Contains(have, "UP") {
		t.Errorf("it is down still: %s", have)
	}
	if leads := nettest.Run(t, "tc", "filter", "show", "dev", pod, "ingress"); strings.Count(leads, "Redirect to device") != 1 {
		t.Errorf("filters: %s", leads)
	}
	if lines, err := n.Sync(t.Context(), nil, nil); err != nil || len(lines) > 0 {
		t.Errorf("%q, %v; want nothing left to do", lines, err)
	}
}

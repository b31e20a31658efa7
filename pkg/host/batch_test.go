package host

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

func TestEachRequestOfABatchHasItsOwnError(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		eth0, err := h.findLink("eth0")
		if err != nil {
			t.Fatal(err)
		}
		at := func(prefix string) netconf.Addr {
			return netconf.Addr{Prefix: netip.MustParsePrefix(prefix), Dev: "eth0"}
		}
		b := &batch{where: " in the pod"}
		b.setUp(eth0.index, "eth0")
		first := b.addAddr(at("10.9.0.1/32"), eth0.index)
		twice := b.addAddr(at("10.9.0.1/32"), eth0.index).tolerating(unix.EEXIST)
		none := b.getLink("none")
		wrong := b.addAddr(at("10.9.0.2/32"), 9999)
		last := b.addAddr(at("10.9.0.3/32"), eth0.index)
		err = h.conn.send(b)
		if !errors.Is(err, unix.ENODEV) || !strings.HasPrefix(err.Error(), "look up none in the pod: ") {
			t.Errorf("error %v, want the first that is not tolerated", err)
		}
		for r, want := range map[*request]error{first: nil, twice: unix.EEXIST, none: unix.ENODEV, wrong: unix.ENODEV, last: nil} {
			if !errors.Is(r.err, want) {
				t.Errorf("%s: %v, want %v", r.object, r.err, want)
			}
		}
		if got := ns.Run(t, "ip", "addr", "show", "dev", "eth0"); !strings.Contains(got, "10.9.0.1/32") || !strings.Contains(got, "10.9.0.3/32") {
			t.Errorf("the kernel did not go on after an error:\n%s", got)
		}
		// Only what failed is tried again.
		ns.Run(t, "ip", "addr", "del", "10.9.0.1/32", "dev", "eth0")
		b.retry()
		_ = h.conn.send(b)
		if !twice.done() || !first.done() || last.err != nil {
			t.Errorf("tried again: %v, %v, %v", first.err, twice.err, last.err)
		}
	})
}

func TestALateAnswerToAnotherRequestIsNotTaken(t *testing.T) {
	asked := []*request{{}, {}}
	ack := newMessage(unix.NLMSG_ERROR, 0, 0, 0, 0, 0).done()
	ack[8] = 6 // the number of an earlier request
	if err := deliver(ack, asked, 7); err != nil || asked[0].answered || asked[1].answered {
		t.Errorf("taken: %v", err)
	}
	ack[8] = 8
	if err := deliver(ack, asked, 7); err != nil || asked[0].answered || !asked[1].answered {
		t.Errorf("the answer to the second request was taken for %v, %v", asked, err)
	}
	if err := deliver(ack[:18], asked, 7); err == nil {
		t.Error("half a message is none")
	}
}

// Kernels that take no settings with a link need not say so.
func TestSettingsThatTheLinkDoesNotShowAreMadeByFile(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		p := netconf.Pod{HostDev: "eth0", HostSysctls: []netconf.Sysctl{
			{Key: "net/ipv4/conf/eth0/rp_filter", Value: "1"}, {Key: "net/ipv4/conf/eth0/forwarding", Value: "1"}, {Key: "net/ipv6/conf/eth0/accept_ra", Value: "0"}}}
		read := func() string {
			return words(ns.Run(t, "cat", "/proc/sys/net/ipv4/conf/eth0/rp_filter", "/proc/sys/net/ipv4/conf/eth0/forwarding", "/proc/sys/net/ipv6/conf/eth0/accept_ra"))
		}
		link, err := h.findLink("eth0")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.setUpLink(p, link.index); err != nil || read() != "1 1 0" {
			t.Errorf("set with the link: %q, %v", read(), err)
		}
		ns.Run(t, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/eth0/rp_filter; echo 0 > /proc/sys/net/ipv4/conf/eth0/forwarding; echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_ra")
		if link, err = h.findLink("eth0"); err != nil {
			t.Fatal(err)
		}
		for name, seen := range map[string]linkState{"not taken": link, "not told": {name: "eth0"}} {
			if err := confirmSettings(p, seen); err != nil || read() != "1 1 0" {
				t.Errorf("%s: %q, %v", name, read(), err)
			}
		}
	})
}

func TestStaleRulesAreReplacedHoweverManyThereAre(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		for _, table := range []string{"105", "106", "107"} {
			ns.Run(t, "ip", "rule", "add", "priority", "1538", "from", "10.0.0.4", "lookup", table, "protocol", "69")
		}
		from := netip.MustParsePrefix("10.0.0.4/32")
		rules := []netconf.Rule{
			{Priority: netconf.PrioritySource, From: from, To: netip.MustParsePrefix("10.0.0.0/16"), Table: 101},
			{Priority: netconf.PrioritySource, From: from, To: netip.MustParsePrefix("172.16.0.0/12"), Table: 101}}
		if err := h.AddRules(rules); err != nil {
			t.Fatal(err)
		}
		want := "1538: from 10.0.0.4 to 10.0.0.0/16 lookup 101 proto 69 1538: from 10.0.0.4 to 172.16.0.0/12 lookup 101 proto 69"
		if got := words(ns.Run(t, "ip", "rule", "show", "priority", "1538")); got != want {
			t.Errorf("rules %s\nwant  %s", got, want)
		}
	})
}

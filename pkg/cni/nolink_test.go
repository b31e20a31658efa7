package cni

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// The agent takes what stands for an ENI without a link out of the packet filter. An ADD goes
// on to other ENIs, and where those are full its error names the link and not the filter.
func TestAnAddDoesWithoutTheENIWhoseLinkIsMissing(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run(routing.String(), func(t *testing.T) { addWithoutLink(t, routing) })
	}
}

func addWithoutLink(t *testing.T, routing ipam.Routing) {
	l := newLab(t, ipam.Settings{Routing: routing})
	table := l.routingMap()
	near, far := nettest.NewNetns(t, "near"), nettest.NewNetns(t, "far")
	l.mustAdd("near", near.Path, plain)
	nettest.Run(t, "ip", "link", "del", "eth1")
	if routing == ipam.Map {
		nettest.Run(t, "nft", "delete element inet enipool source4 { 10.0.0.21, 10.0.0.22 }")
	}
	l.mustAdd("near2", nettest.NewNetns(t, "near2").Path, plain)
	_, err := l.add("far", far.Path, plain)
	want := "2 on an ENI without a link (no link eth1 on this node: the link of the ENI eni-eth1 is missing)"
	if err == nil || Error(err).Code != 11 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "packet filter") {
		t.Errorf("%v; want %q", err, want)
	}
	r, err := l.request("", "", `{"cniVersion":"1.1.0","name":"pods","type":"enipool"}`, false)
	if err != nil {
		t.Fatal(err)
	}
	if warning, err := l.Status(t.Context(), r); err != nil || !strings.Contains(warning, want) {
		t.Errorf("status warns of %q, %v; want %q", warning, err, want)
	}
	nettest.Run(t, "ip", "link", "add", "eth1", "mtu", "9001", "type", "veth", "peer", "name", "eth1-far")
	if routing == ipam.Map {
		nettest.Run(t, "nft", "add table inet enipool; delete table inet enipool; "+table)
	}
	_, _ = l.add("far", far.Path, plain) // which takes back what cools from now on
	l.now += time.Hour
	l.mustAdd("far", far.Path, plain)
	l.delAll("near", "near2", "far")
}

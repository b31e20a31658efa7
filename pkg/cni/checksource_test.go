package cni

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestCheckSeesAPodThatTheRoutingMapSendsOutByAnotherENI(t *testing.T) {
	l := newLab(t, ipam.Settings{Routing: ipam.Map, Families: []eni.Family{eni.IPv4, eni.IPv6}})
	for _, id := range []string{"near1", "near2", "far"} { // the third one is on ENI 1
		ns := nettest.NewNetns(t, id)
		res := l.mustAdd(id, ns.Path, plain)
		t.Cleanup(func() { l.mustDel(id, ns.Path, plain) })
		if err := l.check(id, ns.Path, plain, res); err != nil {
			t.Fatalf("all is in place: %v", err)
		}
		if id != "far" {
			continue
		}
		for _, tt := range []struct{ damage, repair, want string }{
			{"delete element inet enipool source4 { 10.0.0.21 }", "add element inet enipool source4 { 10.0.0.21 : goto eni1 }",
				"nftables map source4 of table inet enipool lacks 10.0.0.21 : goto eni1"},
			{"delete element inet enipool source6 { 2001:db8::21 }; add element inet enipool source6 { 2001:db8::21 : goto eni0 }",
				"delete element inet enipool source6 { 2001:db8::21 }; add element inet enipool source6 { 2001:db8::21 : goto eni1 }",
				`nftables map source6 of table inet enipool has another verdict for 2001:db8::21 than "goto eni1"`},
			{"delete table inet enipool", l.routingMap(), "nftables map source4 of table inet enipool lacks 10.0.0.21 : goto eni1"},
		} {
			nettest.Run(t, "nft", tt.damage)
			if err := l.check(id, ns.Path, plain, res); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("after %q: %v; want %s", tt.damage, err, tt.want)
			}
			nettest.Run(t, "nft", tt.repair)
			if err := l.check(id, ns.Path, plain, res); err != nil {
				t.Errorf("after the repair of %q: %v", tt.damage, err)
			}
		}
	}
}

// Its pod would have an address and reach nothing: the kubelet tries again, and finds the
// table that the agent has put back.
func TestAnAddOnASecondaryENIWaitsForItsElementOfTheRoutingMap(t *testing.T) {
	l := newLab(t, ipam.Settings{Routing: ipam.Map})
	table := l.routingMap()
	status := func() error {
		r, err := l.request("", "", `{"cniVersion":"1.1.0","name":"pods","type":"enipool"}`, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Status(t.Context(), r)
		return err
	}
	if err := status(); err != nil {
		t.Errorf("status of a node that is right: %v", err)
	}
	for _, damage := range []string{"delete table inet enipool", "flush map inet enipool source4"} {
		nettest.Run(t, "nft", damage)
		word, _, _ := strings.Cut(damage, " ")
		near1, near2, last := word+"1", word+"2", word+"3"
		for _, id := range []string{near1, near2} { // on ENI 0, which needs no element
			l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
		}
		far := nettest.NewNetns(t, last)
		_, err := l.add(last, far.Path, plain)
		if err == nil || Error(err).Code != 11 || !strings.HasPrefix(err.Error(), "packet filter: nftables map source4 of table inet enipool lacks 10.0.0.2") ||
			!strings.Contains(err.Error(), ": pods on secondary ENIs would be cut off; on a node that is to have no agent `enipoolctl pool load` puts it right; no agent runs on this node: start it") {
			t.Errorf("after %q: %v", damage, err)
		}
		if err := status(); err == nil || Error(err).Code != 50 || !strings.Contains(err.Error(), "lacks 10.0.0.2") {
			t.Errorf("status after %q: %v", damage, err)
		}
		nettest.Run(t, "nft", "add table inet enipool; delete table inet enipool; "+table)
		l.mustAdd(last, far.Path, plain)
		l.delAll(near1, near2, last)
		l.now += time.Hour // what was used is free again
	}
}

// Beside an agent the pod waits for its repair, and where something undoes that, for whoever ends it.
func TestAnErrorOfThePacketFilterSaysWhatTheAgentSays(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.keepNode()
	const undone = "something on this node undoes what the agent repairs, 231 times in 3m41s so far: nftables: create table inet enipool; by nft (process 7)"
	err := cutOff([]string{"nftables map source4 of table inet enipool lacks 10.0.0.21 : goto eni1"}, nil)
	const begin = "packet filter: nftables map source4 of table inet enipool lacks 10.0.0.21 : goto eni1: pods on secondary ENIs would be cut off; "
	for why, want := range map[string]string{"": begin + "the agent puts it right within seconds", "target 12, at most 36": begin + "the agent puts it right within seconds",
		"target 12, at most 36, cause: " + undone: begin + undone} {
		if err := l.Cache.SetWhy(why); err != nil {
			t.Fatal(err)
		}
		if got := l.tellAgentAway(l.tellRepair(err)); got.Error() != want || !errors.Is(got, errNoSource) {
			t.Errorf("the agent says %q: %v, want %s", why, got, want)
		}
	}
	if none := errors.New("x"); l.tellRepair(none) != none || l.tellRepair(nil) != nil {
		t.Error("another error is changed")
	}
}

// What the look for one element costs an ADD.
func BenchmarkLookForTheElementOfAPod(b *testing.B) {
	nettest.Need(b)
	nettest.Run(b, "nft", "add table inet enipool; add chain inet enipool eni1; add map inet enipool source4 { type ipv4_addr : verdict; elements = { 10.0.0.21 : goto eni1 } }")
	b.Cleanup(func() { nettest.Run(b, "nft", "delete table inet enipool") })
	lease := ipam.Lease{Addresses: []eni.Address{{Addr: netip.MustParseAddr("10.0.0.21"), ENI: 1}}}
	for b.Loop() {
		if err := refuseCutOff(nil, ipam.Settings{Routing: ipam.Map}, lease); err != nil {
			b.Fatal(err)
		}
	}
}

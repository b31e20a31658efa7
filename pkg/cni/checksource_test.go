package cni

import (
	"strings"
	"testing"

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

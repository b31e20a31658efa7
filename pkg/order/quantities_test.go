package order

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// fullNode is a node of two full ENIs of 16 addresses each.
func fullNode(slots int) (Spec, Status) {
	spec := Spec{Mode: Operator, Families: []eni.Family{eni.IPv4}, Slots: slots}
	status := Status{Mode: Operator, Limits: eni.Limits{ENIs: 2, V4: 17}}
	for i := range 2 {
		e := ENI{ID: fmt.Sprint("eni-", i), Index: i, State: Attached}
		for k := range 16 {
			e.Addresses = append(e.Addresses, host(numbered(eni.IPv4, 256*i+k))...)
		}
		status.ENIs = append(status.ENIs, e)
	}
	return spec, status
}

func TestQuantitiesOfANode(t *testing.T) {
	all := func(s Status) []netip.Prefix { return s.ENIs[1].Addresses }
	for _, test := range []struct {
		name                    string
		slots                   int
		change                  func(*Spec, *Status)
		have, short, acceptable int
	}{
		{"as many as asked for", 32, nil, 32, 0, 0},
		{"more asked for than fits is cut by the cap", 48, nil, 32, 0, 0},
		{"more asked for", 48, func(_ *Spec, s *Status) { s.Limits.ENIs = 4 }, 32, 16, 0},
		{"published", 16, func(p *Spec, s *Status) { p.Release = all(*s) }, 16, 0, 16},
		{"accepted, and wanted again", 32, func(_ *Spec, s *Status) { s.Releasing = all(*s) }, 16, 16, 0},
		{"accepted and published still", 16, func(p *Spec, s *Status) { s.Releasing, p.Release = all(*s), all(*s) }, 16, 0, 0},
		{"quarantined", 32, func(_ *Spec, s *Status) { s.Quarantined = []Quarantined{{Prefix: all(*s)[0]}} }, 31, 1, 0},
		{"reserved", 32, func(_ *Spec, s *Status) {
			for _, p := range all(*s)[:3] {
				s.Reserved = append(s.Reserved, Reserved{Addr: p.Addr(), Topology: "db"})
			}
		}, 29, 3, 0},
		{"reserved for a pod and published", 16, func(p *Spec, s *Status) {
			p.Release, s.Reserved = all(*s), []Reserved{{Addr: all(*s)[0].Addr(), Pod: "db-0"}}
		}, 16, 0, 15},
		{"held by others", 32, func(p *Spec, s *Status) { p.Held = all(*s)[:2] }, 30, 2, 0},
		{"no link", 32, func(p *Spec, _ *Status) { p.NoLink = []string{"eni-1"} }, 16, 16, 0},
		{"the primary ENI carries none", 16, func(p *Spec, s *Status) { p.Pool.FirstENI, p.Release = 1, s.ENIs[0].Addresses }, 16, 0, 16},
		{"an ENI being made", 32, func(_ *Spec, s *Status) { s.ENIs[1].State = Creating }, 16, 16, 0},
		{"two families, the scarcer one counts", 16, func(p *Spec, s *Status) {
			p.Families, s.Limits.V6 = both, 17
			s.ENIs[0].Addresses = append(s.ENIs[0].Addresses, host(numbered(eni.IPv6, 1), numbered(eni.IPv6, 2))...)
		}, 2, 14, 0},
		{"prefixes count their size", 32, func(p *Spec, s *Status) {
			s.ENIs[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.3.0/28")}
			p.Release = s.ENIs[0].Addresses
		}, 16, 16, 1},
		{"prefixes of IPv6 have the size of the limits", 24, func(p *Spec, s *Status) {
			p.Families, s.Limits.V6, s.Limits.V6Block = []eni.Family{eni.IPv6}, 17, eni.Block{Bits: 80, Size: 12}
			s.ENIs[0].Addresses = []netip.Prefix{netip.MustParsePrefix("2001:db8:1:2:3::/80")}
		}, 12, 12, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, status := fullNode(test.slots)
			if test.change != nil {
				test.change(&spec, &status)
			}
			have, short, acceptable := Have(spec, status), Short(spec, status, 0, 0), len(Acceptable(spec, status))
			if have != test.have || short != test.short || acceptable != test.acceptable {
				t.Errorf("have %d short %d acceptable %d, want %d %d %d", have, short, acceptable, test.have, test.short, test.acceptable)
			}
			if got := Satisfied(spec, status, 0); got != (have >= test.slots) {
				t.Errorf("satisfied: %v with %d of %d", got, have, test.slots)
			}
			if Satisfied(spec, status, 1) {
				t.Error("satisfied while the outcome of a call is open")
			}
		})
	}
}

func TestCapOfANode(t *testing.T) {
	_, status := fullNode(0)
	for _, test := range []struct{ most, topology, promised, limit, want int }{
		{0, 4, 0, 16, 26}, {0, 0, 0, 16, 30}, {20, 0, 0, 16, 20}, {20, 4, 8, 16, 18}, {0, 99, 0, 16, 0},
	} {
		status.Limits.V4 = test.limit
		spec := Spec{Families: []eni.Family{eni.IPv4}, Pool: pool.Config{MaxAllocate: test.most, TopologyPlaces: test.topology}}
		if got := Cap(spec, status, test.promised); got != test.want {
			t.Errorf("%+v: cap %d", test, got)
		}
	}
}

package ipam

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// wanted makes an inventory: settings and ENIs of the node state, the named ENIs only,
// in that order, numbered as an inventory numbers them.
func wanted(t testing.TB, text string, enis ...int) State {
	t.Helper()
	s := *nodeState(t, 0, text)
	for i, n := range enis {
		e := nic(n)
		e.Index = i
		s.ENIs = append(s.ENIs, e)
	}
	return s
}

func enis(s *State) string {
	text := ""
	for _, e := range s.ENIs {
		text += fmt.Sprintf("%s %d %s\n", e.ID, e.Index, e.Device)
	}
	return text
}

func TestMergeMakesTheStateTheNodeShouldHave(t *testing.T) {
	for _, tt := range []struct {
		name      string
		old       *State
		want      State
		recovered map[string]string
		enis      string
		state     string
	}{
		{
			name: "a new state is all free since now",
			want: wanted(t, `
				10.0.0.11 0 free 0
				10.0.0.21 1 free 0`, 0, 1),
			enis: `
				eni-a 0 eth0
				eni-b 1 eth1`,
			state: `
				10.0.0.11 0 free 100
				10.0.0.21 1 free 100`,
		},
		{
			name: "a lost node state gets its owners back from the kernel",
			want: wanted(t, `
				10.0.0.11 0 free 0
				10.0.0.21 1 free 0`, 0, 1),
			recovered: map[string]string{"10.0.0.21": "web"},
			enis: `
				eni-a 0 eth0
				eni-b 1 eth1`,
			state: `
				10.0.0.11 0 free 100
				10.0.0.21 1 used 100 web`,
		},
		{
			name: "what an address does it goes on doing",
			old: nodeState(t, 2, `
				10.0.0.11 0 used 1 web
				10.0.0.12 0 cooling 2
				10.0.0.13 0 free 3
				10.0.0.21 1 releasing 4`),
			want: wanted(t, `
				10.0.0.11 0 free 0
				10.0.0.12 0 free 0
				10.0.0.13 0 free 0
				10.0.0.21 1 free 0
				10.0.0.22 1 free 0`, 0, 1),
			enis: `
				eni-a 0 eth0
				eni-b 1 eth1`,
			state: `
				10.0.0.11 0 used 1 web
				10.0.0.12 0 cooling 2
				10.0.0.13 0 free 3
				10.0.0.21 1 releasing 4
				10.0.0.22 1 free 100`,
		},
		{
			name: "the node state knows better than the kernel who has an address",
			old:  nodeState(t, 1, `10.0.0.11 0 used 1 web`),
			want: wanted(t, `10.0.0.11 0 free 0`, 0),
			recovered: map[string]string{
				"10.0.0.11": "other"},
			enis:  `eni-a 0 eth0`,
			state: `10.0.0.11 0 used 1 web`,
		},
		{
			name: "what nobody uses can go, with its ENI",
			old: nodeState(t, 3, `
				10.0.0.11 0 used 1 web
				10.0.0.12 0 free 3
				10.0.0.21 1 cooling 4
				10.0.0.31 2 used 5 db`),
			want: wanted(t, `
				10.0.0.11 0 free 0
				10.0.0.31 1 free 0`, 0, 2),
			enis: `
				eni-a 0 eth0
				eni-c 2 eth2`,
			state: `
				10.0.0.11 0 used 1 web
				10.0.0.31 2 used 5 db`,
		},
		{
			name: "a new ENI gets the lowest index that is free",
			old:  nodeState(t, 3, `10.0.0.31 2 used 5 db`),
			want: wanted(t, `
				10.0.0.31 1 free 0
				10.0.0.41 2 free 0
				10.0.0.51 3 free 0`, 0, 2, 3, 4),
			enis: `
				eni-a 0 eth0
				eni-c 2 eth2
				eni-d 1 eth3
				eni-e 3 eth4`,
			state: `
				10.0.0.31 2 used 5 db
				10.0.0.41 1 free 100
				10.0.0.51 3 free 100`,
		},
		{
			name: "a new order of ENIs is a new order of addresses, not new indexes",
			old: nodeState(t, 2, `
				10.0.0.11 0 used 1 web
				10.0.0.21 1 used 2 db`),
			want: wanted(t, `
				10.0.0.21 0 free 0
				10.0.0.11 1 free 0`, 1, 0),
			enis: `
				eni-b 1 eth1
				eni-a 0 eth0`,
			state: `
				10.0.0.21 1 used 2 db
				10.0.0.11 0 used 1 web`,
		},
		{
			name: "a free address moves to another ENI and is new there",
			old: nodeState(t, 2, `
				10.0.0.11 0 free 3
				10.0.0.21 1 used 2 db`),
			want: wanted(t, `
				10.0.0.21 1 free 0
				10.0.0.11 1 free 0`, 0, 1),
			enis: `
				eni-a 0 eth0
				eni-b 1 eth1`,
			state: `
				10.0.0.21 1 used 2 db
				10.0.0.11 1 free 100`,
		},
		{
			name: "an address that cools goes on cooling on another ENI",
			old: nodeState(t, 2, `
				10.0.0.11 0 cooling 90`),
			want: wanted(t, `
				10.0.0.11 1 free 0`, 0, 1),
			enis: `
				eni-a 0 eth0
				eni-b 1 eth1`,
			state: `
				10.0.0.11 1 cooling 90`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			recovered := map[netip.Addr]eni.Owner{}
			for addr, name := range tt.recovered {
				recovered[netip.MustParseAddr(addr)] = owner(name)
			}
			before := ""
			if tt.old != nil {
				before = enis(tt.old) + show(tt.old.Addresses)
			}
			got, err := Merge(tt.old, tt.want, recovered, sec(100))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text(tt.enis), enis(got)); diff != "" {
				t.Errorf("ENIs: %s", diff)
			}
			if diff := cmp.Diff(text(tt.state), show(got.Addresses)); diff != "" {
				t.Errorf("addresses: %s", diff)
			}
			if tt.old != nil && before != enis(tt.old)+show(tt.old.Addresses) {
				t.Error("the old state changed")
			}
		})
	}
}

// Else nobody could build the node state anew while the pod is there.
func TestMergeLetsAnAddressThatAPodHasLostStayWhereItIs(t *testing.T) {
	old := nodeState(t, 2, `
		10.0.0.11 0 used 1 web
		10.0.0.12 0 free 1
		10.0.0.21 1 used 2 db`)
	old.MarkLost([]netip.Addr{netip.MustParseAddr("10.0.0.11")}, sec(3))
	got, err := Merge(old, wanted(t, `
		10.0.0.12 0 free 0
		10.0.0.11 1 free 0
		10.0.0.21 1 free 0`, 0, 1), nil, sec(100))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(`
		10.0.0.12 0 free 1
		10.0.0.11 0 used 1 web
		10.0.0.21 1 used 2 db`), show(got.Addresses)); diff != "" {
		t.Error(diff)
	}
	if !got.Addresses[1].Lost {
		t.Error("it is not lost any more")
	}
	_, err = Merge(old, wanted(t, `
		10.0.0.21 0 free 0
		10.0.0.11 1 free 0`, 1, 0), nil, sec(100))
	if err != nil {
		t.Error("in another order of ENIs:", err)
	}
}

func TestMergeRefusesWithNames(t *testing.T) {
	old := func() *State {
		return nodeState(t, 2, `
			10.0.0.11 0 used 1 web
			10.0.0.12 0 free 1
			10.0.0.21 1 used 2 db`)
	}
	for _, tt := range []struct {
		name string
		want State
		err  string
	}{
		{"to drop used addresses, all of them", wanted(t, `10.0.0.12 0 free 0`, 0),
			"10.0.0.11 can't be removed: web uses it\n10.0.0.21 can't be removed: db uses it"},
		{"to move a used address", wanted(t, `
			10.0.0.11 1 free 0
			10.0.0.21 1 free 0`, 0, 1),
			"10.0.0.11 can't move to another ENI: web uses it"},
		{"to drop the primary ENI", wanted(t, `10.0.0.21 0 free 0`, 1),
			"the primary ENI eni-a can't be removed"},
		{"to leave no ENI", wanted(t, ``),
			"no ENI: a node has at least its primary ENI"},
		{"an address twice", wanted(t, `
			10.0.0.11 0 free 0
			10.0.0.12 0 free 0
			10.0.0.12 0 free 0
			10.0.0.21 1 free 0`, 0, 1),
			"address 10.0.0.12: is in the node state twice"},
		{"an address of another subnet", wanted(t, `
			10.0.0.11 0 free 0
			10.9.0.1 0 free 0
			10.0.0.21 1 free 0`, 0, 1),
			"address 10.9.0.1: is outside the subnet of its ENI eni-a"},
		{"a primary address in the pool", wanted(t, `
			10.0.0.11 0 free 0
			10.0.0.3 0 free 0
			10.0.0.21 1 free 0`, 0, 1),
			"address 10.0.0.3: is an ENI's primary address or its gateway"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Merge(old(), tt.want, nil, sec(100))
			if diff := cmp.Diff(tt.err, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMergeRefusesToForgetWhatOnlyTheKernelKnows(t *testing.T) {
	nic := eni.Interface{ID: "eni-a", Device: "eth0", MTU: 1500, V4: eni.Net{
		Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}}
	want := State{
		Settings:  Settings{MarkMask: DefaultMarkMask, Families: []eni.Family{eni.IPv4}},
		ENIs:      []eni.Interface{nic},
		Addresses: []eni.Address{{Addr: netip.MustParseAddr("10.0.0.11")}},
	}
	lost := map[netip.Addr]eni.Owner{netip.MustParseAddr("10.0.0.12"): {Namespace: "default", Pod: "web"}}
	_, err := Merge(nil, want, lost, 0)
	if err == nil || err.Error() != "10.0.0.12 can't be left out: the kernel shows that default/web uses it" {
		t.Errorf("error %v", err)
	}
}

package pool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// text is a plan as one reads it, a line a step.
func text(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprint(&b, s.Do)
		switch s.Do {
		case Assign:
			fmt.Fprintf(&b, " %s %d %s", s.ENI, s.Count, s.Family)
		case Create:
			fmt.Fprintf(&b, " in %s with %d", s.Subnet, s.Count)
		default:
			fmt.Fprintf(&b, " %s", s.ENI)
			if len(s.Addrs) > 0 {
				fmt.Fprintf(&b, " %d of %s to %s", len(s.Addrs), s.Addrs[0], s.Addrs[len(s.Addrs)-1])
			}
		}
		fmt.Fprintf(&b, ": %s\n", s.Reason)
	}
	return b.String()
}

// with returns the ENI after a change.
func (e ENI) with(change func(*ENI)) ENI {
	change(&e)
	return e
}

func (e ENI) plus(list ...[]Address) ENI {
	for _, l := range list {
		e.Addresses = append(e.Addresses, l...)
	}
	return e
}

func goingBack(list []Address, committed bool) []Address {
	for i := range list {
		list[i].State, list[i].Committed = eni.Releasing, committed
	}
	return list
}

func claimed(list []Address) []Address {
	for i := range list {
		list[i].Reservation = &eni.Reservation{}
	}
	return list
}

func busy(e *ENI)      { e.Busy = true }
func leaving(e *ENI)   { e.Leaving = true }
func keep(e *ENI)      { e.Keep = true }
func elsewhere(e *ENI) { e.Subnet = "subnet-b" }

func TestAPlanSaysWhatToDoAndWhy(t *testing.T) {
	batch := Config{}
	burst := Config{Mode: Burstable, Multiple: 1}
	returns := Config{Mode: Burstable, Multiple: 1, ReturnENIs: true}
	effort := Config{Mode: BestEffort, MaxAboveWatermark: 10}
	for _, tt := range []struct {
		name   string
		c      Config
		s      Snapshot
		target int
		want   string
	}{
		{"nothing to do", batch, node(v4, card(0, v4, 8, 8)), 16, ""},
		{"one round from 1 to 36 pods", batch, node(v4, card(0, v4, 15, 1)), 48, `
create in subnet-a with 16: demand needs 48 slots, 16 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left
create in subnet-a with 16: demand needs 48 slots, 16 there, 16 to come on a new ENI in subnet-a, which has 183 addresses left
`},
		{"older ENIs first", batch, node(v4, card(0, v4, 8, 4), card(1, v4, 1, 0), card(2, v4, 0, 0)), 30, `
assign eni-a 4 ipv4: demand needs 30 slots, 13 there, 4 to come on eni-a
assign eni-b 13 ipv4: demand needs 30 slots, 13 there, 13 to come on eni-b
delete eni-c: demand needs 30 slots, 13 there: eni-c has no slot and is not needed
`},
		{"what is reserved on an ENI keeps it, and others drain before it", effort, node(v4, card(0, v4, 8, 4), card(1, v4, 4, 0), card(2, v4, 4, 0).plus(lines(eni.IPv4, eni.Reserved, 60, 2), claimed(lines(eni.IPv4, eni.Used, 70, 1)))), 5, `
release eni-a 1 of 10.0.0.11 to 10.0.0.11: demand needs 5 slots and may keep 15, 20 there: 1 free ones go back from eni-a
delete eni-b 4 of 10.0.1.0 to 10.0.1.3: demand needs 5 slots and may keep 15, 20 there: all 4 slots of eni-b are idle and not needed
`},
		{"what is on its way counts", batch, node(v4, card(0, v4, 8, 4).with(func(e *ENI) {
			e.Busy, e.Coming = true, []Coming{{eni.IPv4, 4}}
		})), 20, `
create in subnet-a with 4: demand needs 20 slots, 12 there, 4 on their way, 4 to come on a new ENI in subnet-a, which has 196 addresses left
`},
		{"both families, the lagging one first", batch, node(both, card(0, v4, 12, 0).plus(lines(eni.IPv6, eni.Free, 0, 8))), 14, `
assign eni-a 6 ipv6: demand needs 14 slots, 8 there, 2 to come on eni-a by 6 ipv6 addresses
assign eni-a 2 ipv4: demand needs 14 slots, 8 there, 2 to come on eni-a
`},
		{"the family that is asked for next is on its way too", batch, node(both, card(0, both, 8, 0).with(func(e *ENI) {
			e.Busy, e.Coming = true, []Coming{{eni.IPv4, 4}}
		})), 13, `
create in subnet-a with 1: demand needs 13 slots, 8 there, 4 on their way, 1 to come on a new ENI in subnet-a, which has 196 addresses left
`},
		{"as far as it has room there", batch, node(both, card(0, both, 8, 0).plus(goingBack(lines(eni.IPv6, eni.Free, 90, 4), true)).with(func(e *ENI) {
			e.Busy, e.Coming = true, []Coming{{eni.IPv4, 8}}
		})), 16, `
create in subnet-a with 4: demand needs 16 slots, 8 there, 4 on their way, 4 to come on a new ENI in subnet-a, which has 192 addresses left
`},
		{"half slots are made whole while slots may be kept", effort, node(both, card(0, v4, 12, 0).plus(lines(eni.IPv6, eni.Free, 0, 8))), 8, `
assign eni-a 4 ipv6: eni-a has 12 ipv4 and 8 ipv6 addresses: a pod needs one of each, 4 slots become whole
`},
		{"but not if no call is under way", batch, node(both, card(0, v4, 12, 0).plus(lines(eni.IPv6, eni.Free, 0, 8)).with(busy)), 12, `
create in subnet-a with 4: demand needs 12 slots, 8 there, 4 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"an address whose partner's other half is lost is a pod's next one", batch, node(both, card(0, both, 3, 0).plus(
			lines(eni.IPv4, eni.Used, 60, 1), lost(lines(eni.IPv6, eni.Used, 60, 1)))), 3, ""},
		{"half slots stay whose partner comes", batch, node(both, card(0, v4, 3, 0).plus(lines(eni.IPv6, eni.Free, 0, 1)).with(func(e *ENI) {
			e.Coming = []Coming{{eni.IPv6, 2}}
		})), 1, ""},
		{"and whole ones, whatever else comes", batch, node(both, card(0, v4, 1, 0).plus(lines(eni.IPv6, eni.Used, 0, 1)).with(func(e *ENI) {
			e.Coming = []Coming{{eni.IPv4, 1}}
		})), 1, ""},
		{"an empty ENI stays while half slots wait for room", effort, with(node(both, card(0, v4, 12, 0).plus(lines(eni.IPv6, eni.Free, 0, 8)), card(1, v4, 0, 0)),
			func(s *Snapshot) { s.Subnets[0].Free = 0 }), 8, ""},
		{"half slots go back where no more are wanted", batch, node(both, card(0, v4, 12, 0).plus(lines(eni.IPv6, eni.Free, 0, 8))), 8, `
release eni-a 4 of 10.0.0.8 to 10.0.0.11: eni-a has 12 ipv4 and 8 ipv6 addresses, and no pod will need those without a partner
`},
		{"releases are taken back first, but not committed ones", batch,
			node(v4, card(0, v4, 4, 0), card(1, v4, 4, 0).plus(goingBack(lines(eni.IPv4, eni.Free, 300, 2), true), goingBack(lines(eni.IPv4, eni.Free, 310, 3), false))), 12, `
restore eni-b 3 of 10.0.1.54 to 10.0.1.56: demand needs 12 slots, 8 there, 3 to come on eni-b, whose addresses have not gone back yet
assign eni-a 1 ipv4: demand needs 12 slots, 8 there, 1 to come on eni-a
`},
		{"the newest ENI drains first, in whole slots", batch, node(both, card(0, both, 8, 8), card(1, both, 5, 1)), 19, `
release eni-b 6 of 10.0.1.3 to 2001:db8:1::105: demand needs 19 slots, 22 there: 3 free ones go back from eni-b
`},
		{"an ENI that is left with nothing goes", batch, node(v4, card(0, v4, 10, 6), card(1, v4, 8, 0)), 12, `
release eni-a 4 of 10.0.0.12 to 10.0.0.15: demand needs 12 slots, 24 there: 4 free ones go back from eni-a
delete eni-b 8 of 10.0.1.0 to 10.0.1.7: demand needs 12 slots, 24 there: all 8 slots of eni-b are idle and not needed
`},
		{"not if a part of it is wanted", batch, node(v4, card(0, v4, 0, 16), card(1, v4, 8, 0)), 20, `
release eni-b 4 of 10.0.1.4 to 10.0.1.7: demand needs 20 slots, 24 there: 4 free ones go back from eni-b
`},
		{"not if it is somebody else's", batch, node(v4, card(0, v4, 0, 16), card(1, v4, 8, 0).with(keep)), 16, `
release eni-b 8 of 10.0.1.0 to 10.0.1.7: demand needs 16 slots, 24 there: 8 free ones go back from eni-b
`},
		{"the oldest stays, even empty", Config{FirstENI: 1}, node(v4, card(0, v4, 0, 3), card(1, v4, 8, 0)), 0, `
release eni-b 8 of 10.0.1.0 to 10.0.1.7: demand needs 0 slots, 8 there: 8 free ones go back from eni-b
`},
		{"an empty ENI goes when nothing needs it", batch, node(v4, card(0, v4, 8, 8), card(1, v4, 0, 0)), 16, `
delete eni-b: demand needs 16 slots, 16 there: eni-b has no slot and is not needed
`},
		{"what is on its way back is left to finish, and its ENI goes with it", batch,
			node(v4, card(0, v4, 8, 8).plus(goingBack(lines(eni.IPv4, eni.Free, 20, 1), true)), card(1, v4, 0, 0).plus(goingBack(lines(eni.IPv4, eni.Free, 300, 2), false))), 16, `
delete eni-b: demand needs 16 slots, 16 there: eni-b has no slot and is not needed
`},
		{"used, cooling and lost addresses never go", batch, node(v4, card(0, v4, 0, 5).plus(lines(eni.IPv4, eni.Cooling, 50, 3),
			lost(lines(eni.IPv4, eni.Used, 60, 2)))), 0, ""},
		{"a lost address is no slot and takes room", batch, node(v4, card(0, v4, 0, 14).plus(lost(lines(eni.IPv4, eni.Used, 60, 1)))), 16, `
assign eni-a 1 ipv4: demand needs 16 slots, 14 there, 1 to come on eni-a
create in subnet-a with 1: demand needs 16 slots, 14 there, 1 to come on a new ENI in subnet-a, which has 199 addresses left
`},
		{"nothing goes while less is there than wanted", batch, node(v4, card(0, v4, 4, 4), card(1, v4, 8, 0).with(func(e *ENI) {
			e.Coming = []Coming{{eni.IPv4, 8}}
		})), 17, ""},
		{"never more than the node may hold", Config{MaxAllocate: 20}, node(v4, card(0, v4, 8, 8)), 48, `
create in subnet-a with 4: demand needs 48 slots and the node holds 20 at most, 16 there, 4 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"the subnet with the most room", batch, with(node(v4), func(s *Snapshot) {
			s.Subnets = []Subnet{{ID: "subnet-d", Free: 9, New: true}, {ID: "subnet-b", Free: 12, New: true},
				{ID: "subnet-c", Free: 12, New: true}, {ID: "subnet-e", Free: 99, New: true, Blocked: Cause{Kind: SubnetFull}}, {ID: "subnet-a", Free: 99}}
		}), 25, `
create in subnet-b with 11: demand needs 25 slots, 0 there, 11 to come on a new ENI in subnet-b, which has 12 addresses left: no subnet that takes ENIs now has the 17 that fill one
create in subnet-c with 11: demand needs 25 slots, 0 there, 11 to come on a new ENI in subnet-c, which has 12 addresses left: no subnet that takes ENIs now has the 17 that fill one
create in subnet-d with 3: demand needs 25 slots, 0 there, 3 to come on a new ENI in subnet-d, which has 9 addresses left: no subnet that takes ENIs now has the 17 that fill one
`},
		{"no ENI more than the instance carries", batch, with(node(v4, card(0, v4, 0, 16).with(leaving)), func(s *Snapshot) {
			s.Unmanaged, s.Pending = 1, []Pending{{"subnet-a", 7}}
		}), 40, `
create in subnet-a with 16: demand needs 40 slots, 0 there, 7 on their way, 16 to come on a new ENI in subnet-a, which has 192 addresses left
`},
		{"best effort takes more where it has to ask", effort, node(v4, card(0, v4, 0, 9)), 10, `
assign eni-a 7 ipv4: demand needs 10 slots and may keep 20, 9 there, 7 to come on eni-a
`},
		{"best effort does not ask for more alone", effort, node(v4, card(0, v4, 1, 9)), 10, ""},
		{"best effort keeps what is above up to its watermark", effort, node(v4, card(0, v4, 16, 0), card(1, v4, 8, 1)), 12, `
release eni-b 3 of 10.0.1.6 to 10.0.1.8: demand needs 12 slots and may keep 22, 25 there: 3 free ones go back from eni-b
`},
		{"a burstable ENI is full from the start", burst, node(v4, card(0, v4, 15, 1)), 32, `
create in subnet-a with 16: demand needs 32 slots, 16 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"the last burstable ENI is what remains", Config{Mode: Burstable, Multiple: 1, MaxAllocate: 20}, node(v4, card(0, v4, 15, 1)), 20, `
create in subnet-a with 4: demand needs 20 slots, 16 there, 4 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"maxPods is a most too", burst, with(node(v4, card(0, v4, 15, 1)), func(s *Snapshot) { s.MaxPods = 18 }), 18, `
create in subnet-a with 2: demand needs 18 slots, 16 there, 2 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"what cools down takes none of the pods' room", burst, with(node(v4, card(0, v4, 15, 1)), func(s *Snapshot) { s.MaxPods, s.Cooling = 18, 2 }), 20, `
create in subnet-a with 4: demand needs 20 slots, 16 there, 4 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"a burstable ENI is full again as soon as it can", burst, node(v4, card(0, v4, 2, 8).plus(goingBack(lines(eni.IPv4, eni.Free, 99, 1), false)), card(1, v4, 16, 0)), 20, `
restore eni-a 1 of 10.0.0.99 to 10.0.0.99: eni-a has 10 slots and mode burstable keeps it full: 6 to come
assign eni-a 5 ipv4: eni-a has 10 slots and mode burstable keeps it full: 6 to come
`},
		{"a burstable ENI is not begun where it can't be filled", burst, with(node(v4, card(0, v4, 15, 1)), func(s *Snapshot) { s.Subnets[0].Free = 16 }), 32, ""},
		{"but in part where that is asked for", Config{Mode: Burstable, Multiple: 1, Partial: true},
			with(node(v4, card(0, v4, 15, 1)), func(s *Snapshot) { s.Subnets[0].Free = 16 }), 32, `
create in subnet-a with 15: demand needs 32 slots, 16 there, 15 to come on a new ENI in subnet-a, which has 16 addresses left: no subnet that takes ENIs now has the 17 that fill one
`},
		{"addresses of a burstable ENI stay", burst, node(v4, card(0, v4, 10, 6), card(1, v4, 16, 0)), 16, ""},
		{"idle newest ENIs go back where that is asked for", returns, node(v4, card(0, v4, 10, 6), card(1, v4, 16, 0), card(2, v4, 16, 0)), 32, `
delete eni-c 16 of 10.0.2.0 to 10.0.2.15: demand needs 32 slots, 48 there: all 16 slots of eni-c are idle and not needed
`},
		{"none goes back for one that is only being made", returns, with(node(v4, card(0, v4, 10, 6), card(1, v4, 12, 0).with(elsewhere)), func(s *Snapshot) {
			s.Subnets = append(s.Subnets, Subnet{ID: "subnet-b"})
		}), 29, `
create in subnet-a with 16: demand needs 29 slots, 28 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"no ENI is filled only to make an idle one superfluous", returns, with(node(v4, card(0, v4, 6, 2), card(1, v4, 8, 0).with(elsewhere)), func(s *Snapshot) {
			s.Subnets = append(s.Subnets, Subnet{ID: "subnet-b"})
		}), 16, ""},
		{"when the idle ones have gone the others are filled", returns, node(v4, card(0, v4, 6, 2), card(1, v4, 8, 1), card(2, v4, 3, 0)), 17, `
assign eni-a 8 ipv4: eni-a has 8 slots and mode burstable keeps it full: 8 to come
assign eni-b 7 ipv4: eni-b has 9 slots and mode burstable keeps it full: 7 to come
delete eni-c 3 of 10.0.2.0 to 10.0.2.2: demand needs 17 slots, 20 there: all 3 slots of eni-c are idle and not needed
`},
		{"an idle one in the middle waits", returns, node(v4, card(0, v4, 10, 6), card(1, v4, 16, 0), card(2, v4, 15, 1)), 32, ""},
		{"a busy newest one too", returns, node(v4, card(0, v4, 10, 6), card(1, v4, 16, 0), card(2, v4, 16, 0).with(busy)), 32, ""},
		{"nothing is known of the families", batch, node(nil), 16, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), text(Plan(tt.c, tt.s, tt.target))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func lost(list []Address) []Address {
	for i := range list {
		list[i].Lost = true
	}
	return list
}

func with(s Snapshot, change func(*Snapshot)) Snapshot {
	change(&s)
	return s
}

func TestTargetCausesNameWhatIsInTheWay(t *testing.T) {
	burst := Config{Mode: Burstable, Multiple: 1}
	full := card(0, v4, 0, 16)
	for _, tt := range []struct {
		name   string
		c      Config
		s      Snapshot
		target int
		want   []string
	}{
		{"nothing", Config{}, node(v4, full), 64, nil},
		{"the most of the instance", Config{}, node(v4, full), 65,
			[]string{"demand needs 65 slots and the node holds 64 at most: 4 ENIs for pods with 16 slots each"}},
		{"the most of the node", Config{MaxAllocate: 20}, node(v4, full), 65,
			[]string{"demand needs 65 slots and the node holds 20 at most: maxAllocate"}},
		{"the most of the kubelet", Config{}, with(node(v4, full), func(s *Snapshot) { s.MaxPods = 20 }), 65,
			[]string{"demand needs 65 slots and the node holds 20 at most: the kubelet's maxPods"}},
		{"the most of the kubelet while some cool down", Config{}, with(node(v4, full), func(s *Snapshot) { s.MaxPods, s.Cooling = 20, 3 }), 65,
			[]string{"demand needs 65 slots and the node holds 23 at most: the kubelet's maxPods, and 3 that cool down"}},
		{"limits that are not known", Config{}, with(node(v4, full), func(s *Snapshot) { s.Limits = eni.Limits{} }), 65,
			[]string{"demand needs 65 slots and the node holds 0 at most: 0 ENIs for pods with 0 slots each"}},
		{"the ENI limit", Config{}, with(node(v4, full, card(1, v4, 0, 16).with(leaving)), func(s *Snapshot) {
			s.Unmanaged, s.Pending = 1, []Pending{{"subnet-a", 5}}
		}), 64, []string{"eni-b is being deleted", "ENI limit reached: 4 of 4, 1 of them being made and 1 not enipool's"}},
		{"a subnet without room", Config{}, with(node(v4, card(0, v4, 0, 3)), func(s *Snapshot) { s.Subnets[0].Free = 0 }), 8,
			[]string{"eni-a: its subnet subnet-a has no address left", "subnet-a has 0 addresses left, a new ENI needs 2"}},
		{"a subnet that can't fill an ENI", burst, with(node(v4, full), func(s *Snapshot) { s.Subnets[0].Free = 16 }), 32,
			[]string{"subnet-a has 16 addresses left, a new ENI needs 17"}},
		{"a subnet that refused", Config{}, with(node(v4, card(0, v4, 0, 3)), func(s *Snapshot) { s.Subnets[0].Blocked = Cause{Kind: CallFailed} }), 8,
			[]string{"eni-a: its subnet subnet-a refused lately", "subnet-a refused lately: no new ENI there now"}},
		{"a call under way, and no subnet for new ENIs", Config{}, with(node(v4, card(0, v4, 0, 3).with(busy)), func(s *Snapshot) {
			s.Subnets[0].New = false
		}), 8, []string{"eni-a is busy with an earlier call", "no subnet takes the ENI that is needed"}},
		{"an account without room for ENIs", Config{}, with(node(v4, card(0, v4, 0, 3)), func(s *Snapshot) {
			s.NoNew, s.Subnets[0].Free = Cause{Kind: ENILimit, Words: "limit reached: the quota is 5"}, 0
		}), 8, []string{"eni-a: its subnet subnet-a has no address left", "no new ENI is asked for now: limit reached: the quota is 5"}},
		{"an account without room, and nothing else in the way", Config{}, with(node(v4, full), func(s *Snapshot) { s.NoNew = Cause{Kind: ENILimit, Words: "limit reached: the quota is 5"} }), 32,
			[]string{"no new ENI is asked for now: limit reached: the quota is 5"}},
		{"a subnet that said why", Config{}, with(node(v4, card(0, v4, 0, 3)), func(s *Snapshot) {
			s.Subnets[0].Blocked = Cause{Kind: Forbidden, Words: "forbidden: no sg-0"}
		}), 8, []string{"eni-a: its subnet subnet-a refused lately: forbidden: no sg-0", "subnet-a refused lately: no new ENI there now: forbidden: no sg-0"}},
		{"a subnet that refused new ENIs, and gives those there addresses", Config{}, with(node(v4, card(0, v4, 0, 14)), func(s *Snapshot) {
			s.Subnets[0].NoNew = Cause{Kind: Forbidden, Words: "forbidden: no sg-0"}
		}), 24, []string{"subnet-a refused lately: no new ENI there now: forbidden: no sg-0"}},
		{"an ENI that said why", Config{}, with(node(v4, card(0, v4, 0, 3).with(func(e *ENI) { e.NoMore = Cause{Kind: ENILimit, Words: "limit reached: 4 addresses"} })), func(s *Snapshot) {
			s.Subnets[0].New = false
		}), 8, []string{"eni-a refused addresses lately: limit reached: 4 addresses", "no subnet takes the ENI that is needed"}},
		{"an unknown subnet", Config{}, with(node(v4, card(0, v4, 0, 3)), func(s *Snapshot) { s.Subnets = nil }), 8,
			[]string{"eni-a: nothing is known of its subnet subnet-a", "no subnet takes the ENI that is needed"}},
		{"addresses that only take room", Config{}, with(node(v4, card(0, v4, 0, 13).plus(lost(lines(eni.IPv4, eni.Used, 60, 1)),
			goingBack(lines(eni.IPv4, eni.Free, 70, 2), true))), func(s *Snapshot) { s.Limits.ENIs = 1 }), 16,
			[]string{"eni-a: 1 ipv4 addresses that the cloud took are still pods'", "eni-a: 2 ipv4 addresses are on their way back",
				"ENI limit reached: 1 of 1, 0 of them being made and 0 not enipool's"}},
		{"unknown families", Config{}, node(nil), 1, []string{"the node's address families are not known"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Texts(TargetCauses(tt.c, tt.s, tt.target))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if steps := Plan(tt.c, tt.s, tt.target); tt.s.NoNew.Is() && slices.ContainsFunc(steps, func(s Step) bool { return s.Do == Create }) {
				t.Errorf("an ENI is asked for all the same: %v", steps)
			}
		})
	}
}

// Of 30 pods on ENIs of 14 slots the third new ENI of a target of 48 serves none; where
// nobody says what pods need, all of it is spare.
func TestAPlanTellsWhatPodsDoWithout(t *testing.T) {
	s := Snapshot{Families: []eni.Family{eni.IPv4}, Limits: eni.Limits{ENIs: 5, V4: 15},
		Subnets: []Subnet{{ID: "a", Free: 200, New: true}}, ENIs: []ENI{{ID: "own", Subnet: "a", Keep: true}}}
	for needed, want := range map[int][]bool{0: {true, true, true, true}, 1: {false, true, true, true}, 14: {false, true, true, true},
		15: {false, false, true, true}, 30: {false, false, false, true}, 48: {false, false, false, false}} {
		s.Needed = needed
		var got []bool
		for _, step := range Plan(Config{}, s, 48) {
			got = append(got, step.Spare)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d needed (-want +got):\n%s", needed, diff)
		}
	}
}

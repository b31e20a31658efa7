package pool

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// prefixes is a node with those ENIs whose IPv4 addresses come in /28s, up to 64 on an
// ENI, and its IPv6 addresses 64 at a time.
func prefixes(families []eni.Family, enis ...ENI) Snapshot {
	s := node(families, enis...)
	s.Limits = eni.Limits{ENIs: 4, V4: 65, V6: 65, V4Block: eni.Block{Bits: 28, Size: 16}, V6Block: eni.Block{Bits: 80, Size: 64}}
	return s
}

func roomFor(s Snapshot, free int) Snapshot {
	s.Subnets = []Subnet{{ID: "subnet-a", Free: free, New: true}}
	return s
}

// oneByOne lets the addresses of the family come singly.
func oneByOne(s Snapshot, f eni.Family) Snapshot {
	if f == eni.IPv4 {
		s.Limits.V4Block = eni.Block{}
	} else {
		s.Limits.V6Block = eni.Block{}
	}
	return s
}

func maxPods(s Snapshot, n int) Snapshot {
	s.MaxPods = n
	return s
}

// partlyUsed is an ENI with 3 slots and a block of IPv4 too many, of which none can go: pods use one address of its block and
// one of its single ones.
func partlyUsed() ENI {
	return card(0, v4, 0, 0).plus(
		lines(eni.IPv4, eni.Used, 0, 1), lines(eni.IPv4, eni.Free, 1, 2), lines(eni.IPv4, eni.Used, 16, 1), lines(eni.IPv4, eni.Free, 17, 15),
		lines(eni.IPv6, eni.Used, 0, 2), lines(eni.IPv6, eni.Free, 2, 1))
}

func TestBlocksComeAndGoAsAWhole(t *testing.T) {
	batch := Config{}
	burst := Config{Mode: Burstable, Multiple: 1}
	effort := Config{Mode: BestEffort, MaxAboveWatermark: 8}
	for _, tt := range []struct {
		name   string
		c      Config
		s      Snapshot
		target int
		want   string
	}{
		{"a slot more is a block more", batch, prefixes(v4, card(0, v4, 4, 12)), 17, `
assign eni-a 16 ipv4: demand needs 17 slots, 16 there, 16 to come on eni-a
`},
		{"and that is enough for the next ones", batch, prefixes(v4, card(0, v4, 18, 14)), 30, ""},
		{"what the rest of a block has too many is kept", batch, prefixes(v4, card(0, v4, 30, 2)), 17, ""},
		{"an ENI takes as many blocks as it has room for", batch, prefixes(v4, card(0, v4, 40, 8)), 90, `
assign eni-a 16 ipv4: demand needs 90 slots, 48 there, 16 to come on eni-a
create in subnet-a with 32: demand needs 90 slots, 48 there, 32 to come on a new ENI in subnet-a, which has 184 addresses left
`},
		{"more than maxPods by less than a block", batch, maxPods(prefixes(v4, card(0, v4, 4, 60), card(1, v4, 2, 30)), 110), 110, `
assign eni-b 16 ipv4: demand needs 110 slots, 96 there, 16 to come on eni-b
`},
		{"a subnet with less than a block gives what it has", batch, roomFor(prefixes(v4, card(0, v4, 4, 12)), 3), 40, `
assign eni-a 3 ipv4: demand needs 40 slots, 16 there, 3 to come on eni-a
`},
		{"and a new ENI begins with what it has", batch, roomFor(prefixes(v4, card(0, v4, 4, 60)), 20), 99, `
create in subnet-a with 19: demand needs 99 slots, 64 there, 19 to come on a new ENI in subnet-a, which has 20 addresses left: no subnet that takes ENIs now has the 65 that fill one
`},
		{"single addresses take the room of blocks", batch, prefixes(v4, card(0, v4, 1, 2)), 40, `
assign eni-a 16 ipv4: demand needs 40 slots, 3 there, 16 to come on eni-a
create in subnet-a with 32: demand needs 40 slots, 3 there, 32 to come on a new ENI in subnet-a, which has 184 addresses left
`},
		{"what a plan brings makes no single address superfluous before it is there", batch, prefixes(v4, card(0, v4, 1, 48)), 64, `
create in subnet-a with 16: demand needs 64 slots, 49 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"nor an ENI of them", batch, prefixes(v4, card(0, v4, 0, 64), card(1, v4, 4, 0), card(2, v4, 0, 16)), 96, `
assign eni-c 16 ipv4: demand needs 96 slots, 84 there, 16 to come on eni-c
`},
		{"a block that a pod uses stays", batch, prefixes(v4, card(0, v4, 31, 1)), 1, `
release eni-a 16 of 10.0.0.16 to 10.0.0.31: demand needs 1 slots, 32 there: 16 free ones go back from eni-a
`},
		{"and one that rests", batch, prefixes(v4, card(0, v4, 16, 0).plus(lines(eni.IPv4, eni.Free, 16, 15), lines(eni.IPv4, eni.Cooling, 31, 1))), 2, `
release eni-a 16 of 10.0.0.0 to 10.0.0.15: demand needs 2 slots, 32 there: 16 free ones go back from eni-a
`},
		{"the newest ENI gives first", batch, prefixes(v4, card(0, v4, 30, 2), card(1, v4, 30, 2)), 40, `
release eni-b 16 of 10.0.1.16 to 10.0.1.31: demand needs 40 slots, 64 there: 16 free ones go back from eni-b
`},
		{"never below the target", batch, prefixes(v4, card(0, v4, 30, 2)), 17, ""},
		{"a smaller one of single addresses goes where a block can't", batch, prefixes(v4, card(0, v4, 20, 16)), 32, `
release eni-a 4 of 10.0.0.32 to 10.0.0.35: demand needs 32 slots, 36 there: 4 free ones go back from eni-a
`},
		{"all of a block is taken back", batch, prefixes(v4, card(0, v4, 4, 12).plus(goingBack(lines(eni.IPv4, eni.Free, 16, 16), false))), 17, `
restore eni-a 16 of 10.0.0.16 to 10.0.0.31: demand needs 17 slots, 16 there, 16 to come on eni-a, whose addresses have not gone back yet
`},
		{"but none of which a part has gone for good", batch, prefixes(v4, card(0, v4, 4, 12).plus(goingBack(lines(eni.IPv4, eni.Free, 16, 15), false), goingBack(lines(eni.IPv4, eni.Free, 31, 1), true))), 17, `
assign eni-a 16 ipv4: demand needs 17 slots, 16 there, 16 to come on eni-a
`},
		{"a part that can't go stays", batch, prefixes(v4, card(0, v4, 0, 4).plus(goingBack(lines(eni.IPv4, eni.Free, 4, 12), false))), 4, `
restore eni-a 12 of 10.0.0.4 to 10.0.0.15: eni-a: 12 addresses can't go, because others of their blocks stay
`},
		{"a rest that is free follows the part that has gone", batch, prefixes(v4, card(0, v4, 4, 12).plus(goingBack(lines(eni.IPv4, eni.Free, 16, 10), true), lines(eni.IPv4, eni.Free, 26, 6))), 16, `
release eni-a 6 of 10.0.0.26 to 10.0.0.31: demand needs 16 slots, 22 there: 6 free ones go back from eni-a
`},
		{"a new ENI in dual stack has one IPv6 block for all", batch, prefixes(both, card(0, both, 4, 60)), 70, `
create in subnet-a with 16: demand needs 70 slots, 64 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left
`},
		{"which is not missed when IPv4 comes, nor given back for being too large", batch, prefixes(both, card(0, v4, 4, 28).plus(lines(eni.IPv6, eni.Used, 0, 28), lines(eni.IPv6, eni.Free, 28, 36))), 40, `
assign eni-a 16 ipv4: demand needs 40 slots, 32 there, 16 to come on eni-a
`},
		{"IPv4 goes without it", batch, prefixes(both, card(0, v4, 20, 12).plus(lines(eni.IPv6, eni.Used, 0, 12), lines(eni.IPv6, eni.Free, 12, 52))), 16, `
release eni-a 16 of 10.0.0.16 to 10.0.0.31: demand needs 16 slots, 32 there: 16 free ones go back from eni-a
`},
		{"it goes with the last of IPv4", batch, prefixes(both, card(0, both, 0, 0).plus(lines(eni.IPv4, eni.Free, 0, 16), lines(eni.IPv6, eni.Free, 0, 64))), 0, `
release eni-a 80 of 10.0.0.0 to 2001:db8:1::3f: demand needs 0 slots, 16 there: 16 free ones go back from eni-a
`},
		{"and comes with the first", batch, prefixes(both, card(0, v4, 16, 0)), 4, `
assign eni-a 64 ipv6: eni-a has 16 ipv4 and 0 ipv6 addresses: a pod needs one of each, 16 slots become whole
`},
		{"it comes from a subnet that has few addresses of the other family", batch, roomFor(prefixes(both, card(0, v4, 16, 0)), 3), 4, `
assign eni-a 64 ipv6: eni-a has 16 ipv4 and 0 ipv6 addresses: a pod needs one of each, 16 slots become whole
`},
		{"where IPv4 can't go IPv6 stays with it", batch, oneByOne(prefixes(both, card(0, both, 16, 16)), eni.IPv6), 27, ""},
		{"of a block that a pod uses IPv6 lets all of IPv4 go", batch, oneByOne(prefixes(both, card(0, v4, 5, 0).plus(lines(eni.IPv6, eni.Used, 0, 4), lines(eni.IPv6, eni.Free, 4, 1))), eni.IPv4), 0, `
release eni-a 5 of 10.0.0.0 to 10.0.0.4: demand needs 0 slots, 5 there: 5 free ones go back from eni-a
`},
		{"what is left of blocks that pods use gets no partner beyond the target", batch, oneByOne(prefixes(both, partlyUsed()), eni.IPv6), 3, ""},
		{"and one for each slot that is wanted", batch, oneByOne(prefixes(both, partlyUsed()), eni.IPv6), 4, `
assign eni-a 1 ipv6: eni-a has 19 ipv4 and 3 ipv6 addresses: a pod needs one of each, 1 slots become whole
`},
		{"IPv4 is waited for where IPv6 is on its way", batch, prefixes(both, card(0, v4, 0, 16).with(func(e *ENI) {
			e.Busy, e.Coming = true, []Coming{{eni.IPv6, 64}}
		})), 40, ""},
		{"as far as the ENI has room beside single addresses", batch, prefixes(both, card(0, both, 0, 32).plus(lines(eni.IPv6, eni.Free, 32, 32)).with(func(e *ENI) {
			e.Busy, e.Coming = true, []Coming{{eni.IPv4, 2}}
		})), 60, `
create in subnet-a with 32: demand needs 60 slots, 32 there, 2 on their way, 32 to come on a new ENI in subnet-a, which has 198 addresses left
`},
		{"of an ENI that gets a block single addresses go later", batch, prefixes(v4, card(0, v4, 2, 16)), 20, `
assign eni-a 16 ipv4: demand needs 20 slots, 18 there, 16 to come on eni-a
`},
		{"an ENI that gets some is not given back though a block brings others too many", batch, prefixes(both, card(0, v4, 16, 0),
			card(1, v4, 1, 0).plus(goingBack(lines(eni.IPv6, eni.Free, 256, 1), false))), 2, `
restore eni-b 1 of 2001:db8:1::100 to 2001:db8:1::100: demand needs 2 slots, 0 there, 1 to come on eni-b, whose addresses have not gone back yet
assign eni-a 64 ipv6: eni-a has 16 ipv4 and 0 ipv6 addresses: a pod needs one of each, 16 slots become whole
`},
		{"what is left of a block that was taken away takes the room of one", batch, prefixes(v4, card(0, v4, 0, 32).plus(lost(lines(eni.IPv4, eni.Used, 32, 2)))), 40, `
assign eni-a 16 ipv4: demand needs 40 slots, 32 there, 16 to come on eni-a
`},
		{"burstable fills whole blocks, the last beyond maxPods", burst, maxPods(prefixes(v4, card(0, v4, 16, 0)), 40), 40, `
assign eni-a 32 ipv4: demand needs 40 slots, 16 there, 32 to come on eni-a
`},
		{"best effort keeps what it may and the rest of the block", effort, prefixes(v4, card(0, v4, 30, 2)), 10, ""},
		{"and gives back whole blocks above that", effort, prefixes(v4, card(0, v4, 46, 2)), 10, `
release eni-a 16 of 10.0.0.32 to 10.0.0.47: demand needs 10 slots and may keep 18, 48 there: 16 free ones go back from eni-a
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), text(Plan(tt.c, tt.s, tt.target))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANewENIIsAskedForWholeBlocksOfEachFamily(t *testing.T) {
	for _, tt := range []struct {
		name     string
		families []eni.Family
		free     int
		target   int
		want     Step
	}{
		{"both", both, 200, 20, Step{Count: 32, V4: 32, V6: 64}},
		{"IPv6 alone", []eni.Family{eni.IPv6}, 200, 20, Step{Count: 64, V6: 64}},
		{"a subnet with a block and some, where single ones take the room of blocks", both, 26, 20, Step{Count: 19, V4: 19, V6: 64}},
		{"a subnet with some", both, 3, 20, Step{Count: 2, V4: 2, V6: 64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := Plan(Config{}, roomFor(prefixes(tt.families), tt.free), tt.target)
			if len(steps) == 0 || steps[0].Count != tt.want.Count || steps[0].V4 != tt.want.V4 || steps[0].V6 != tt.want.V6 {
				t.Errorf("the plan is %+v, want %+v", steps, tt.want)
			}
		})
	}
}

func TestSingleAddressesInTheRoomOfBlocksAreNamed(t *testing.T) {
	s := prefixes(v4, card(0, v4, 1, 3))
	s.Limits.ENIs = 1
	got := Texts(TargetCauses(Config{}, s, 10))
	want := []string{"eni-a: 4 single ipv4 addresses take the room of a block of 16 each", "ENI limit reached: 1 of 1, 0 of them being made and 0 not enipool's"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}

// BenchmarkPlanOfManyBlocks is a plan for the largest of instances: 15 ENIs of 49 /28s.
func BenchmarkPlanOfManyBlocks(b *testing.B) {
	s := prefixes(v4)
	s.Limits.ENIs, s.Limits.V4 = 15, 1+49*16
	for i := range 15 {
		s.ENIs = append(s.ENIs, card(4*i, v4, 384, 400))
		s.ENIs[i].Index = i
	}
	for b.Loop() {
		if steps := Plan(Config{}, s, 15*784-5); len(steps) > 0 {
			b.Fatal(steps)
		}
	}
}

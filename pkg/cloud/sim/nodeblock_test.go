package sim

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// small makes an account with one subnet and a node n whose IPv4 addresses come in
// /28s, up to 4 on an ENI.
func small(t *testing.T, o Options, cidr string) (*Account, *Old, string) {
	t.Helper()
	a := NewAccount(o)
	must(t, a.AddSubnet(Subnet{ID: "a", V4: netip.MustParsePrefix(cidr)}))
	n, err := addOld(a, Machine{Name: "n", Subnet: "a", Limits: eni.Limits{ENIs: 3, V4: 65, V4Block: eni.Block{Bits: 28, Size: 16}}})
	must(t, err)
	t.Cleanup(func() { must(t, a.Check()) })
	return a, n, a.Attached("n")[0].ID
}

// ranges is a list of addresses as one reads it.
func ranges(addrs []netip.Addr) string {
	var parts []string
	for i := 0; i < len(addrs); {
		k := i
		for k+1 < len(addrs) && addrs[k+1] == addrs[k].Next() {
			k++
		}
		parts = append(parts, fmt.Sprintf("%s+%d", addrs[i], k-i+1))
		i = k + 1
	}
	return strings.Join(parts, " ")
}

func TestBlocksAreAlignedAndLeaveOutWhatIsReserved(t *testing.T) {
	_, n, id := small(t, Options{}, "10.0.0.0/26")
	// The first block has the gateway, the last the broadcast address.
	if got := ranges(assign(t, n, id, 32)); got != "10.0.0.16+32" {
		t.Errorf("two blocks of a /26 are %s", got)
	}
	if got := ranges(assign(t, n, id, 2)); got != "10.0.0.3+2" {
		t.Errorf("two single addresses of it are %s", got)
	}
}

func TestASubnetThatRunsOutOfBlocksGivesSingleAddresses(t *testing.T) {
	_, n, id := small(t, Options{}, "10.0.0.0/27")
	got, err := n.AssignAddresses(t.Context(), id, eni.IPv4, 16)
	wantKind(t, err, cloud.ErrLimit) // each takes the room of a block
	if ranges(got) != "10.0.0.3+4" {
		t.Errorf("a /27 without a whole block gave %s", ranges(got))
	}
	made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 32})
	must(t, err)
	if ranges(made.Addresses) != "10.0.0.8+4" {
		t.Errorf("an ENI in it began with %s", ranges(made.Addresses))
	}
}

func TestTheNextBlockIsAnotherUnlessTheLatestIsToCome(t *testing.T) {
	for _, order := range []Reuse{ReuseLowest, ReuseLatest, ReuseOldest} {
		_, n, id := small(t, Options{Reuse: order}, "10.0.0.0/26")
		block := assign(t, n, id, 16)
		must(t, n.UnassignAddresses(t.Context(), id, block))
		if again := assign(t, n, id, 16); order == ReuseLatest && !slices.Equal(block, again) || order != ReuseLatest && slices.Equal(block, again) {
			t.Errorf("order %d: after %s came %s", order, ranges(block), ranges(again))
		}
	}
}

func TestAFreedPartOfABrokenBlockIsGivenSingly(t *testing.T) {
	_, n, id := small(t, Options{}, "10.0.0.0/27")
	first := assign(t, n, id, 4)
	made := create(t, n, "t1", 4) // up to 10.0.0.11
	must(t, n.UnassignAddresses(t.Context(), id, first))
	got, err := n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 16)
	wantKind(t, err, cloud.ErrLimit)
	if len(got) != 0 {
		t.Errorf("an ENI full of single addresses got %s", ranges(got))
	}
	if got := ranges(assign(t, n, id, 4)); got != "10.0.0.3+3 10.0.0.12+1" && got != "10.0.0.3+4" {
		t.Errorf("freed ones came as %s", got)
	}
}

func TestABlockIsTakenAwayAsAWhole(t *testing.T) {
	a, n, id := small(t, Options{}, "10.0.0.0/24")
	block := assign(t, n, id, 16)
	single := assign(t, n, id, 1)
	must(t, a.TakeAway(block[7]))
	if got := a.Attached("n")[0].Addresses; !slices.Equal(single, got) {
		t.Errorf("left are %s, want %s", ranges(got), ranges(single))
	}
}

func TestAPartialAnswerIsOfWholeBlocks(t *testing.T) {
	a, n, id := small(t, Options{}, "10.0.0.0/24")
	a.FailNext(assignAddresses, Fault{Partial: true})
	got := assign(t, n, id, 48)
	if len(got) != 32 {
		t.Errorf("half of three blocks are %s", ranges(got))
	}
	a.FailNext(unassignAddresses, Fault{Partial: true})
	wantKind(t, n.UnassignAddresses(t.Context(), id, got), cloud.ErrUnknown)
	if left := a.Attached("n")[0].Addresses; len(left) != 16 {
		t.Errorf("after half of the blocks were taken there are %s", ranges(left))
	}
}

func TestABlockThatCannotBeIsRefused(t *testing.T) {
	a, _, _ := small(t, Options{}, "10.0.0.0/24")
	for _, b := range []eni.Block{{Bits: 28, Size: 17}, {Bits: 33, Size: 1}, {Bits: 28}, {Bits: -1, Size: 4}, {Size: 16}} {
		err := addNode(a, Machine{Name: "n3", Subnet: "a", Limits: eni.Limits{ENIs: 1, V4: 5, V4Block: b}})
		if err == nil || !strings.Contains(err.Error(), "can't be") {
			t.Errorf("a node of blocks %+v: %v", b, err)
		}
	}
}

func TestBlocksAreSaved(t *testing.T) {
	a, n, id := small(t, Options{}, "10.0.0.0/24")
	block := append(assign(t, n, id, 32), assign(t, n, id, 1)...)
	must(t, n.UnassignAddresses(t.Context(), id, block[:16]))
	must(t, a.Fragment("a", true))
	var file bytes.Buffer
	must(t, a.Save(&file))
	again, err := Load(Options{}, &file)
	must(t, err)
	n = again.Old("n")
	wantKind(t, n.UnassignAddresses(t.Context(), id, block[16:20]), cloud.ErrForbidden)
	got, err := n.AssignAddresses(t.Context(), id, eni.IPv4, 16)
	wantKind(t, err, cloud.ErrLimit)
	if len(got) != 2 {
		t.Errorf("a broken subnet gave %s", ranges(got))
	}
	must(t, again.Fragment("a", false))
	must(t, n.UnassignAddresses(t.Context(), id, got))
	assign(t, n, id, 16)
	must(t, again.Check())
}

// TestNoRowOfCallsBreaksBlocks lets Check, and what cloud.Cloud says of blocks, judge
// random calls.
func TestNoRowOfCallsBreaksBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := NewAccount(Options{BlockV4: 30, Reuse: rapid.SampledFrom([]Reuse{ReuseLowest, ReuseLatest, ReuseOldest}).Draw(t, "reuse")})
		fine(t, a.AddSubnet(Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/26"), V6: netip.MustParsePrefix("fd00::/64")}))
		limits := eni.Limits{ENIs: 3, V4: 21, V6: 21, V4Block: eni.Block{Bits: 30, Size: 4}, V6Block: eni.Block{Bits: 80, Size: 20}}
		for _, name := range []string{"n1", "n2"} {
			_, err := addOld(a, Machine{Name: name, Subnet: "a", Limits: limits})
			fine(t, err)
		}
		token := 0
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			name := rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node")
			n, nics := a.Old(name), a.Attached(name)
			nic := rapid.SampledFrom(nics).Draw(t, "nic")
			f := rapid.SampledFrom([]eni.Family{eni.IPv4, eni.IPv4, eni.IPv6}).Draw(t, "family")
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				token++
				_, _ = n.CreateInterface(t.Context(), cloud.Create{Token: fmt.Sprint(token), Subnet: "a",
					V4: rapid.IntRange(0, 20).Draw(t, "v4"), V6: rapid.IntRange(0, 20).Draw(t, "v6")})
			case 1, 2:
				count := rapid.IntRange(0, 20).Draw(t, "count")
				got, err := n.AssignAddresses(t.Context(), nic.ID, f, count)
				if len(got) > count || len(got) < count && err == nil {
					t.Fatalf("AssignAddresses(%d) = %v, %v", count, got, err)
				}
			case 3, 4:
				some := rapid.SliceOfDistinct(rapid.SampledFrom(append(slices.Clone(nic.Addresses), netip.MustParseAddr("10.9.9.9"))), rapid.ID).Draw(t, "some")
				before := a.Attached(name)
				if err := n.UnassignAddresses(t.Context(), nic.ID, some); err != nil && !slices.EqualFunc(before, a.Attached(name), same) {
					t.Fatalf("UnassignAddresses failed with %v and did something", err)
				}
			case 5:
				if nic.Ours {
					fine(t, n.DeleteInterface(t.Context(), nic.ID))
				} else {
					fine(t, a.Fragment("a", rapid.Bool().Draw(t, "broken")))
				}
			case 6:
				fine(t, n.UnassignAddresses(t.Context(), nic.ID, nic.Addresses))
			}
			fine(t, a.Check())
		}
	})
}

func fine(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func same(a, b cloud.Interface) bool { return a.ID == b.ID && slices.Equal(a.Addresses, b.Addresses) }

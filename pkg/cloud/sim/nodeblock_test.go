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
)

// small makes an account with one subnet and a node n whose IPv4 addresses come in
// /28s, up to 4 on an ENI.
func small(t *testing.T, o Options, cidr string) (*Account, *Node, string) {
	t.Helper()
	a := NewAccount(o)
	must(t, a.AddSubnet(Subnet{ID: "a", V4: netip.MustParsePrefix(cidr)}))
	n, err := a.AddNode(NodeSpec{Name: "n", Subnet: "a", Limits: eni.Limits{ENIs: 3, V4: 65, V4Block: eni.Block{Bits: 28, Size: 16}}})
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

func TestABlockThatCannotBeIsRefused(t *testing.T) {
	a, _, _ := small(t, Options{}, "10.0.0.0/24")
	for _, b := range []eni.Block{{Bits: 28, Size: 17}, {Bits: 33, Size: 1}, {Bits: 28}, {Bits: -1, Size: 4}, {Size: 16}} {
		err := addNode(a, NodeSpec{Name: "n3", Subnet: "a", Limits: eni.Limits{ENIs: 1, V4: 5, V4Block: b}})
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
	n = again.Node("n")
	wantKind(t, n.UnassignAddresses(t.Context(), id, block[16:20]), cloud.ErrForbidden)
	got, err := n.AssignAddresses(t.Context(), id, eni.IPv4, 16)
	must(t, err)
	if len(got) != 2 {
		t.Errorf("a broken subnet gave %s", ranges(got))
	}
	must(t, again.Fragment("a", false))
	must(t, n.UnassignAddresses(t.Context(), id, got))
	assign(t, n, id, 16)
	must(t, again.Check())
}

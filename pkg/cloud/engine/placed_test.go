package engine

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// shownAs is an ENI as answers show it, written as its ID, device index and addresses, of which
// the first is the primary one. eni-0 is the instance's own.
func shownAs(text string) nic {
	var i nic
	words := strings.Fields(text)
	i.ID, i.MAC, i.Ours = words[0], words[0], words[0] != "eni-0"
	i.raw = driver.Interface{ID: i.ID, Primary: !i.Ours}
	fmt.Sscan(words[1], &i.Index)
	for n, word := range words[2:] {
		if a := netip.MustParseAddr("10.0.0." + word); n == 0 {
			i.V4 = eni.Net{Primary: netip.PrefixFrom(a, 24)}
		} else {
			i.Addresses = append(i.Addresses, a)
		}
	}
	return i
}

// asShown is its inverse.
func asShown(nics []nic) (texts []string) {
	for _, i := range nics {
		text := fmt.Sprint(i.ID, " ", i.Index, " ", i.V4.Primary.Addr())
		for _, a := range i.Addresses {
			text += " " + a.String()
		}
		texts = append(texts, strings.ReplaceAll(text, "10.0.0.", ""))
	}
	return texts
}

func TestWhatCallsHavePutStandsAgainstAnswersThatLag(t *testing.T) {
	last := placed{map[int]string{1: "eni-new"}, map[netip.Addr]string{
		netip.MustParseAddr("10.0.0.20"): "eni-new", netip.MustParseAddr("10.0.0.21"): "eni-new", netip.MustParseAddr("10.0.0.22"): "eni-other"}}
	for what, tt := range map[string]struct{ shown, want string }{
		"nothing else":                                {"eni-0 0 10, eni-new 1 20 21", "eni-0 0 10, eni-new 1 20 21"},
		"another at its index":                        {"eni-0 0 10, eni-old 1 30 31, eni-new 1 20 21", "eni-0 0 10, eni-new 1 20 21"},
		"its primary address, as another's":           {"eni-0 0 10, eni-old 2 20 31, eni-new 1 20 21", "eni-0 0 10, eni-new 1 20 21"},
		"an address of it, as another's primary one":  {"eni-0 0 10, eni-old 2 21 31, eni-new 1 20 21", "eni-0 0 10, eni-new 1 20 21"},
		"its primary address, among another's":        {"eni-0 0 10, eni-old 2 30 20, eni-new 1 20 21", "eni-0 0 10, eni-old 2 30, eni-new 1 20 21"},
		"an address of it, among those of the node's": {"eni-0 0 10 21 11, eni-new 1 20 21", "eni-0 0 10 11, eni-new 1 20 21"},
		"where it is not shown":                       {"eni-0 0 10, eni-old 1 20 21", "eni-0 0 10, eni-old 1 20 21"},
		"where it is shown attached nowhere":          {"eni-0 0 10, eni-old 1 30, eni-new -1 20", "eni-0 0 10, eni-old 1 30, eni-new -1 20"},
		"an address that no call has put, on two":     {"eni-0 0 10, eni-old 2 30 40, eni-new 1 20 40", "eni-0 0 10, eni-old 2 30 40, eni-new 1 20 40"},
		"the node's own, whatever is shown elsewhere": {"eni-0 1 20, eni-new 1 20", "eni-0 1 20, eni-new 1 20"},
		"what one put last gets by another's call":    {"eni-0 0 10, eni-new 1 20 22, eni-other 2 30 22", "eni-0 0 10, eni-new 1 20, eni-other 2 30 22"},
	} {
		var nics []nic
		for text := range strings.SplitSeq(tt.shown, ", ") {
			nics = append(nics, shownAs(text))
		}
		if got := strings.Join(asShown(last.keepUncontradicted(nics)), ", "); got != tt.want {
			t.Errorf("%s: of %q there stands %q, want %q", what, tt.shown, got, tt.want)
		}
	}
}

// Somebody has detached what a call made, and another call made an ENI at the same index: that one
// stands, in whichever order the two are kept.
func TestTheLastCallAtAnIndexStands(t *testing.T) {
	for range 100 {
		n, now := &Node{}, time.Now()
		n.t.Times.Settle = 10 * time.Second
		n.memory.ready = map[string]seenENI{
			"eni-old": {shownAs("eni-old 1 20"), now.Add(-2 * time.Second)},
			"eni-new": {shownAs("eni-new 1 30"), now.Add(-time.Second)},
		}
		if at := n.lastPlaced(now).index[1]; at != "eni-new" {
			t.Fatalf("at index 1 stands %s", at)
		}
	}
}

package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// nic is an ENI as the tests use it: eni-a is index 0 on eth0, and so on.
func nic(index int) eni.Interface {
	return eni.Interface{
		ID: "eni-" + string(rune('a'+index)), Index: index, Device: fmt.Sprintf("eth%d", index), MTU: 1500,
		V4: eni.Net{Primary: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + index)}), 24), Gateway: netip.MustParseAddr("10.0.0.1")},
		V6: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("2001:db8::%x/64", 2+index)), Gateway: netip.MustParseAddr("fe80::1")},
	}
}

// nodeState reads a node state of n ENIs from lines "address eni state since [owner]",
// with since in seconds.
func nodeState(t testing.TB, n int, text string, families ...eni.Family) *State {
	t.Helper()
	if len(families) == 0 {
		families = []eni.Family{eni.IPv4}
	}
	s := &State{Settings: Settings{MarkMask: DefaultMarkMask, CoolDown: 30 * time.Second, Families: families}}
	for i := range n {
		s.ENIs = append(s.ENIs, nic(i))
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		index, err1 := strconv.Atoi(f[1])
		state, err2 := eni.ParseState(f[2])
		since, err3 := strconv.Atoi(f[3])
		if err := cmp.Or(err1, err2, err3); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		a := eni.Address{Addr: netip.MustParseAddr(f[0]), ENI: index, State: state, Since: sec(since)}
		if len(f) > 4 {
			o := owner(f[4])
			a.Owner = &o
		}
		s.Addresses = append(s.Addresses, a)
	}
	return s
}

// show is the inverse of nodeState.
func show(addresses []eni.Address) string {
	var b strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&b, "%s %d %s %d", a.Addr, a.ENI, a.State, a.Since/time.Second)
		if a.Owner != nil {
			fmt.Fprintf(&b, " %s", a.Owner.Pod)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// text takes the indentation off a literal.
func text(indented string) string {
	var b strings.Builder
	for line := range strings.Lines(indented) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func sec(n int) time.Duration { return time.Duration(n) * time.Second }

func key(name string) eni.Key { return eni.Key{Network: "pods", Container: name, IfName: "eth0"} }

func owner(name string) eni.Owner { return eni.Owner{Key: key(name), Pod: name} }

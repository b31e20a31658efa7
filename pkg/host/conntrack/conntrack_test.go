package conntrack_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/host/conntrack"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// newConnections tracks datagrams between loopback addresses. Connections to some
// ports are marked.
func newConnections(t *testing.T, to ...string) {
	t.Helper()
	nettest.Need(t)
	nettest.Run(t, "ip", "link", "set", "lo", "up")
	nettest.Run(t, "nft", `add table inet try; add chain inet try out { type filter hook output priority 0; }
		add rule inet try out ct state new ct mark set udp dport map { 6001 : 0x4203, 6002 : 0x4204, 6003 : 0x4303, 6004 : 0x4273 }`)
	t.Cleanup(func() { nettest.Run(t, "nft", "delete table inet try") })
	t.Cleanup(func() {
		if _, err := conntrack.Forget([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, conntrack.Mark{}); err != nil {
			t.Error(err)
		}
	})
	for _, to := range to {
		c, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// marks returns the mark of the connection to each port, as the kernel shows it.
func marks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/net/nf_conntrack")
	if err != nil {
		t.Skip("the kernel does not show its connections in /proc:", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var port, mark string
		for _, word := range strings.Fields(line) {
			if p, ok := strings.CutPrefix(word, "dport="); ok && port == "" {
				port = p
			}
			if m, ok := strings.CutPrefix(word, "mark="); ok {
				mark = m
			}
		}
		if strings.Contains(line, "udp") {
			found[port] = mark
		}
	}
	return found
}

func TestMarksMoveToOtherBitsAndTheRestStays(t *testing.T) {
	newConnections(t, "127.0.0.1:6001", "[::1]:6002", "127.0.0.1:6003", "127.0.0.1:6004")
	n, err := conntrack.MoveMarks(conntrack.Mark{Value: 0x200, Mask: 0xf00}, conntrack.Mark{Value: 0x20, Mask: 0xf0})
	if err != nil {
		t.Fatal(err)
	}
	if n != 3 {
		t.Errorf("moved %d marks, want 3", n)
	}
	have := marks(t)
	for port, want := range map[int]int{
		6001: 0x4023,
		6002: 0x4024, // IPv6
		6003: 0x4303, // had another value of the same bits
		6004: 0x4073, // had a value in the new place already
	} {
		if got := have[fmt.Sprint(port)]; got != fmt.Sprint(want) {
			t.Errorf("the connection to port %d has mark %s, want %d", port, got, want)
		}
	}
}

func TestForgetDeletesTheConnectionsOfAnAddressAndNoOthers(t *testing.T) {
	newConnections(t, "127.0.0.1:5001", "127.0.0.2:5002", "[::1]:5003")
	n, err := conntrack.Forget([]netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.IPv6Loopback()}, conntrack.Mark{})
	if err != nil || n != 2 {
		t.Errorf("forgot %d connections, %v; want 2", n, err)
	}
	if have := marks(t); have["5001"] == "" || have["5002"] != "" || have["5003"] != "" {
		t.Errorf("connections left: %v; want only that to 127.0.0.1", have)
	}
}

func TestForgetLeavesConnectionsWithoutAnyOfTheMarks(t *testing.T) {
	newConnections(t, "127.0.0.1:6001", "127.0.0.1:6003", "127.0.0.1:6004", "127.0.0.1:5005", "127.0.0.2:6001", "[::1]:6002")
	low := []conntrack.Mark{{Value: 0x1, Mask: 0x1}, {Value: 0x2, Mask: 0x2}}
	n, err := conntrack.Forget([]netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.3")}, low...)
	if err != nil || n != 1 {
		t.Errorf("forgot %d connections, %v; want that to 127.0.0.2", n, err)
	}
	n, err = conntrack.Forget([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, low...)
	if err != nil || n != 3 {
		t.Errorf("forgot %d connections, %v; want 3", n, err)
	}
	if have := marks(t); have["6001"] != "" || have["6002"] == "" || have["5005"] == "" {
		t.Errorf("connections left: %v; want those to ports 5005 and 6002", have)
	}
}

func TestForgetUnansweredShowsWhereAFlowGoesAndLeavesOutWhatWasAnswered(t *testing.T) {
	newConnections(t, "127.0.0.1:5001", "127.0.0.2:5002", "[::1]:5003")
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b := make([]byte, 1)
	if _, err := client.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	_, from, err := server.ReadFrom(b)
	if err == nil {
		_, err = server.WriteTo([]byte("!"), from)
	}
	if err == nil {
		_, err = client.Read(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	shown := map[netip.AddrPort]bool{}
	n, err := conntrack.ForgetUnanswered(func(f netconf.Flow) bool {
		shown[netip.AddrPortFrom(f.To, f.Port)] = f.Transport == netconf.UDP && f.To == f.Target && f.From == f.Back && !f.Answered
		return f.Port == 5002
	})
	if err != nil || n != 1 {
		t.Errorf("forgot %d connections, %v; want 1", n, err)
	}
	for _, to := range []string{"127.0.0.1:5001", "127.0.0.2:5002", "[::1]:5003"} {
		if !shown[netip.MustParseAddrPort(to)] {
			t.Errorf("%s was not shown as it is: %v", to, shown)
		}
	}
	if _, found := shown[netip.MustParseAddrPort(server.LocalAddr().String())]; found {
		t.Error("what was answered was shown")
	}
	if have := marks(t); have["5001"] == "" || have["5002"] != "" || have["5003"] == "" {
		t.Errorf("connections left: %v; want all but that to port 5002", have)
	}
}

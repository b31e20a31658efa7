package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/inventory"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// By which ENI a packet leaves is decided for each packet, whose address it carries once for
// each connection. Where what is inside the VPC changes, those of pods on secondary ENIs
// begin anew; those of the primary ENI go on.
func TestFlowsOfPodsBeginAnewWhereTheVPCGrowsOrShrinks(t *testing.T) {
	settings := windowVariants(true)
	settings["nftables, routing rule"] = ipam.Settings{Routing: ipam.Rule, Firewall: ipam.Nftables, SNAT: true, Families: []eni.Family{eni.IPv4}}
	for name, s := range settings {
		for _, grows := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, grows %v", name, grows), func(t *testing.T) {
				v := newVPC(t, s)
				answerAll(t, v.internet, "5000")
				before, after := v.inv, v.withInternet()
				if !grows {
					before, after = after, before
				}
				v.load(before)
				flows := map[string]*net.UDPConn{
					"10.0.0.11": udpSocket(t, v.pods["a"], "10.0.0.11:4000", internet4+":5000"),
					"10.0.0.21": udpSocket(t, v.pods["b"], "10.0.0.21:4000", internet4+":5000"),
				}
				for pod, flow := range flows {
					until(t, "an answer to "+pod, func() bool { return answered(flow) })
				}
				lines := v.load(after)
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "forget 1 connections of pods whose way out") }) {
					t.Errorf("the change says %q", lines)
				}
				for pod, flow := range flows {
					until(t, "an answer to "+pod+" after the change", func() bool { return answered(flow) })
				}
				if lines := v.load(after); len(lines) > 0 {
					t.Errorf("a second load: %q", lines)
				}
			})
		}
	}
}

// A connection that its peer does not know any more is reset. One that the VPC drops hangs.
func TestAConnectionOfAPodEndsAtOnceWhereTheVPCGrows(t *testing.T) {
	for name, s := range windowVariants(true) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.serveLines("5001")
			var c net.Conn
			v.must(v.pods["b"].Do(func() (err error) {
				c, err = net.DialTimeout("tcp", internet4+":5001", 10*time.Second)
				return err
			}))
			defer c.Close()
			answers := bufio.NewReader(c)
			exchange := func() error {
				v.must(c.SetDeadline(time.Now().Add(10 * time.Second)))
				if _, err := c.Write([]byte("?\n")); err != nil {
					return err
				}
				_, err := answers.ReadString('\n')
				return err
			}
			v.must(exchange())
			v.load(v.withInternet())
			if err := exchange(); err == nil || strings.Contains(err.Error(), "timeout") {
				t.Errorf("the connection: %v", err)
			}
		})
	}
}

// withInternet is the inventory with the internet inside the VPC.
func (v *vpc) withInternet() inventory.Inventory {
	inv := v.inv
	inv.Settings.VPC = append(slices.Clone(inv.Settings.VPC), netip.MustParsePrefix(internet4+"/32"))
	return inv
}

// serveLines has the internet give back each line that a connection sends.
func (v *vpc) serveLines(port string) {
	v.t.Helper()
	var l net.Listener
	v.must(v.internet.Do(func() (err error) { l, err = net.Listen("tcp4", ":"+port); return err }))
	v.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					_, _ = fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
}

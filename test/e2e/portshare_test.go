package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// tellAddress serves TCP in ns: whoever asks is told which of its addresses was reached.
func tellAddress(t *testing.T, ns nettest.Netns, port string) {
	t.Helper()
	serveTCP(t, ns, port, func(c net.Conn) {
		_, _ = io.WriteString(c, netip.MustParseAddrPort(c.LocalAddr().String()).Addr().Unmap().String())
	})
}

// sharedPort is what a runtime asks for in each of the pod's networks.
const sharedPort = `"runtimeConfig":{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}`

// collect is a GC of the network that knows no attachment.
func (v *vpc) collect(network string) {
	v.t.Helper()
	conf := strings.Replace(v.n.conf("1.1.0", `"cni.dev/valid-attachments":[]`), `"name":"pods"`, fmt.Sprintf(`"name":%q`, network), 1)
	v.run(v.n.cmd(call{command: "GC", conf: conf}))
}

// run starts a process on the node.
func (v *vpc) run(cmd *exec.Cmd) {
	v.t.Helper()
	var out []byte
	err := v.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err != nil {
		v.t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// Runtimes hand a pod's port mappings to each of its networks. The first has the port;
// when it goes, by whatever way, the other takes over.
func TestTwoNetworksOfAPodShareAHostPort(t *testing.T) {
	for name, s := range variants(eni.IPv4) {
		if s.SNAT {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.plugin("DEL", "b") // its addresses are for the second network
			v.plugin("DEL", "a")
			tellAddress(t, v.pods["a"], "80")
			leadsTo := func(when, want string) {
				t.Helper()
				for _, to := range []string{"10.0.0.10:8080", "10.0.0.20:8080"} {
					if got := query(v.internet, "tcp", to); got != want {
						t.Errorf("%s %s leads to %s, want %s", when, to, got, want)
					}
				}
			}
			end := map[string]func(netIface){
				"DEL": func(at netIface) { v.call("DEL", at) },
				"GC":  func(at netIface) { v.collect(at.network) },
			}
			for way, end := range end {
				for _, order := range [][]netIface{{inPods, inStorage}, {inStorage, inPods}} {
					results := map[netIface]string{inPods: v.call("ADD", inPods, sharedPort), inStorage: v.call("ADD", inStorage, sharedPort)}
					check := func(networks ...netIface) {
						t.Helper()
						for _, at := range networks {
							v.call("CHECK", at, sharedPort, `"prevResult":`+results[at])
						}
						if lines := v.checkNode(); len(lines) > 0 {
							t.Errorf("pool check: %q", lines)
						}
					}
					leadsTo("with both networks", addresses(t, results[inPods])[0])
					check(inPods, inStorage)
					v.node.Run(t, "nft", "flush", "ruleset")
					v.reload()
					leadsTo("when all is made anew from the records", addresses(t, results[inPods])[0])
					check(inPods, inStorage)
					end(order[0])
					leadsTo("after "+way+" of "+order[0].network, addresses(t, results[order[1]])[0])
					check(order[1])
					end(order[1])
					leadsTo("after "+way+" of both", "refused")
					if records := v.records(); len(records) > 0 {
						t.Errorf("records %q are left", records)
					}
				}
			}
		})
	}
}

func TestAllAddressesInSeveralWordsAreOneHostPort(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		if s.SNAT {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			a := v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80), tcp(8080, 80).on("0.0.0.0"), tcp(8080, 80).on("::"),
				tcp(8081, 80).on("::"), tcp(8081, 80)}})
			answerAll(t, v.pods["a"], "80")
			for to, want := range map[string]string{"10.0.0.10:8080": internet4, "[2001:db8::20]:8080": internet6, "10.0.0.20:8081": internet4, "[2001:db8::10]:8081": internet6} {
				if seen := query(v.internet, "tcp", to); seen != want {
					t.Errorf("%s: %s", to, seen)
				}
			}
			v.must(a.check())
			v.must(a.del())
			err := v.newAttachment(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80), tcp(8080, 81).on("0.0.0.0")}}).add()
			var e *types.Error
			if !errors.As(err, &e) || e.Code != types.ErrInvalidNetworkConfig || !strings.Contains(e.Msg, "runtimeConfig.portMappings[1].hostPort: 8080") {
				t.Errorf("a port that leads to two places: error %v, want code 7 with key and value", err)
			}
		})
	}
}

func TestAPodHasThousandsOfHostPorts(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		if s.SNAT || s.Firewall == ipam.Nftables && s.Routing == ipam.Map {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			var ports []port
			for i := range 3000 {
				ports = append(ports, tcp(10000+i, 80))
			}
			a := v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": ports})
			answerAll(t, v.pods["a"], "80")
			ask := func(want4, want6 string) {
				t.Helper()
				for to, want := range map[string]string{"10.0.0.10:10000": want4, "10.0.0.20:12999": want4, "[2001:db8::10]:12999": want6} {
					if seen := query(v.internet, "tcp", to); seen != want {
						t.Errorf("%s: %s, want %s", to, seen, want)
					}
				}
			}
			ask(internet4, internet6)
			v.must(a.check())
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("pool check: %q", lines)
			}
			v.must(a.del())
			ask("refused", "refused")
		})
	}
}

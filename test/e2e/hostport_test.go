package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
)

// attachment is a pod that a runtime attaches with capabilities.
type attachment struct {
	v    *vpc
	conf string // the conflist
	cni  *libcni.CNIConfig
	rt   *libcni.RuntimeConf
}

// port is a port mapping as runtimes send it.
type port map[string]any

func tcp(host, pod int) port { return port{"hostPort": host, "containerPort": pod, "protocol": "tcp"} }
func udp(host, pod int) port { return port{"hostPort": host, "containerPort": pod, "protocol": "udp"} }

func (p port) on(ip string) port { p["hostIP"] = ip; return p }

// builtIn is the conflist of enipool alone, chained that with the reference plugins.
func (v *vpc) builtIn() string {
	plugin := v.n.conf("1.0.0", `"capabilities":{"portMappings":true,"bandwidth":true}`)
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","plugins":[%s]}`, plugin)
}

func (v *vpc) chained() string {
	return v.n.chain("1.0.0", `{"type":"portmap","snat":true,"capabilities":{"portMappings":true}}`, `{"type":"bandwidth","capabilities":{"bandwidth":true}}`)
}

// attach replaces the pod's attachment by one that asks for something.
func (v *vpc) replacePod(conf, id string, capabilities map[string]any) *attachment {
	v.t.Helper()
	v.plugin("DEL", id)
	a := v.newAttachment(conf, id, capabilities)
	if err := a.add(); err != nil {
		v.t.Fatal(err)
	}
	return a
}

func (v *vpc) newAttachment(conf, id string, capabilities map[string]any) *attachment {
	v.t.Helper()
	a := &attachment{v: v, conf: conf, cni: libcni.NewCNIConfigWithCacheDir(filepath.SplitList(cniPath(v.t)), v.t.TempDir(), nil),
		rt: &libcni.RuntimeConf{ContainerID: id, NetNS: v.pods[id].Path, IfName: "eth0", CapabilityArgs: capabilities}}
	v.t.Cleanup(func() { v.must(a.del()) })
	return a
}

func (a *attachment) on(do func(*libcni.NetworkConfigList) error) error {
	return a.v.node.Do(func() error { return do(list(a.v.t, a.conf)) })
}

func (a *attachment) add() error {
	return a.on(func(l *libcni.NetworkConfigList) error {
		res, err := a.cni.AddNetworkList(context.Background(), l, a.rt)
		if err == nil {
			_, err = current.NewResultFromResult(res)
		}
		return err
	})
}

func (a *attachment) check() error {
	return a.on(func(l *libcni.NetworkConfigList) error { return a.cni.CheckNetworkList(context.Background(), l, a.rt) })
}

func (a *attachment) del() error {
	return a.on(func(l *libcni.NetworkConfigList) error { return a.cni.DelNetworkList(context.Background(), l, a.rt) })
}

// answer serves TCP and UDP of both families in ns: whoever asks is told the
// address it comes from.
func answerAll(t *testing.T, ns nettest.Netns, port string) {
	t.Helper()
	var l net.Listener
	var u net.PacketConn
	err := ns.Do(func() (err error) {
		if l, err = net.Listen("tcp", ":"+port); err == nil {
			u, err = net.ListenPacket("udp", ":"+port)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); u.Close() })
	source := func(a net.Addr) string { return netip.MustParseAddrPort(a.String()).Addr().Unmap().String() }
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, source(c.RemoteAddr()))
			c.Close()
		}
	}()
	go func() {
		for b := make([]byte, 100); ; {
			_, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo([]byte(source(from)), from)
		}
	}()
}

// query connects from ns and returns the source that the other side saw, or what
// kind of failure it was.
func query(ns nettest.Netns, network, to string) (seen string) {
	return queryWithin(10*time.Second, ns, network, to)
}

// queryWithin is query for what may get no answer at all.
func queryWithin(patience time.Duration, ns nettest.Netns, network, to string) (seen string) {
	err := ns.Do(func() error {
		c, err := net.DialTimeout(network, to, patience)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if strings.HasPrefix(network, "udp") {
			if _, err := c.Write([]byte("?")); err != nil {
				return err
			}
		}
		b := make([]byte, 100)
		n, err := c.Read(b)
		seen = string(b[:n])
		return err
	})
	var timeout net.Error
	switch {
	case err == nil:
		return seen
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case strings.Contains(err.Error(), "refused"):
		return "refused"
	}
	return err.Error()
}

// The same pods with the same ports, once by enipool alone and once by the chain
// with the reference plugin: whoever asks gets the same answer.
func TestHostPortsLeadWhereThePortmapPluginLeadsThem(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		for _, way := range []string{"built in", "chained"} {
			t.Run(name+", "+way, func(t *testing.T) {
				v := newVPC(t, s)
				conf := v.builtIn()
				if way == "chained" {
					conf = v.chained()
				}
				v.replacePod(conf, "a", map[string]any{"portMappings": []port{tcp(8080, 80), udp(8080, 80), tcp(8081, 80).on("10.0.0.20"),
					tcp(8082, 80).on("0.0.0.0"), tcp(8083, 80).on("::"), tcp(8084, 80).on("127.0.0.1")}})
				v.replacePod(conf, "b", map[string]any{"portMappings": []port{tcp(9090, 80), udp(9090, 80), tcp(8081, 80).on("10.0.0.10")}})
				for _, id := range []string{"a", "b"} {
					answerAll(t, v.pods[id], "80")
				}
				for _, c := range hostPortCases(v) {
					if seen := query(c.from, c.network, c.to); seen != c.want {
						t.Errorf("%s (%s %s from %s): %s, want %s", c.name, c.network, c.to, c.from.Name, seen, c.want)
					}
				}
			})
		}
	}
}

type hostPortCase struct {
	name        string
	from        nettest.Netns
	network, to string
	want        string // the source that the pod sees, or how it fails
}

func hostPortCases(v *vpc) []hostPortCase {
	a, b, out := v.pods["a"], v.pods["b"], v.internet
	return []hostPortCase{
		{"from outside by the pod's ENI", out, "tcp", "10.0.0.10:8080", internet4},
		{"from outside by another ENI", out, "tcp", "10.0.0.20:8080", internet4},
		{"from outside by ENI 0 for a pod of ENI 1", out, "tcp", "10.0.0.10:9090", internet4},
		{"from outside by ENI 1 for a pod of ENI 1", out, "tcp", "10.0.0.20:9090", internet4},
		{"UDP by ENI 0", out, "udp", "10.0.0.10:8080", internet4},
		{"UDP by ENI 1 for a pod of ENI 0", out, "udp", "10.0.0.20:8080", internet4},
		{"UDP by ENI 0 for a pod of ENI 1", out, "udp", "10.0.0.10:9090", internet4},
		{"IPv6", out, "tcp", "[2001:db8::10]:8080", internet6},
		{"IPv6 by ENI 1 for a pod of ENI 0", out, "tcp", "[2001:db8::20]:8080", internet6},
		{"IPv6 by ENI 0 for a pod of ENI 1", out, "tcp", "[2001:db8::10]:9090", internet6},
		{"IPv6 UDP", out, "udp", "[2001:db8::20]:9090", internet6},
		{"a port of one address", out, "tcp", "10.0.0.20:8081", internet4},
		{"the same port of another address is another pod's", out, "tcp", "10.0.0.10:8081", internet4},
		{"a port of IPv4 addresses has no IPv6", out, "tcp", "[2001:db8::10]:8081", "refused"},
		{"all IPv4 addresses", out, "tcp", "10.0.0.10:8082", internet4},
		{"all IPv4 addresses, by IPv6", out, "tcp", "[2001:db8::10]:8082", "refused"},
		{"all IPv6 addresses", out, "tcp", "[2001:db8::20]:8083", internet6},
		{"all IPv6 addresses, by IPv4", out, "tcp", "10.0.0.10:8083", "refused"},
		{"another port", out, "tcp", "10.0.0.10:8099", "refused"},
		{"the port of another protocol", out, "udp", "10.0.0.10:8081", "refused"},
		{"a pod asks another by the node", b, "tcp", "10.0.0.10:8080", "10.0.0.21"},
		{"a pod asks another by the node, UDP", a, "udp", "10.0.0.20:9090", "10.0.0.11"},
		{"a pod asks another by the node, IPv6", a, "tcp", "[2001:db8::10]:9090", "2001:db8::11"},
		{"a pod asks itself by the node", a, "tcp", "10.0.0.10:8080", "10.0.0.10"},
		{"a pod of ENI 1 asks itself by the node", b, "tcp", "10.0.0.20:9090", "10.0.0.10"},
		{"a pod asks itself by the node, UDP", b, "udp", "10.0.0.10:9090", "10.0.0.10"},
		{"a pod asks itself by the node, IPv6", a, "tcp", "[2001:db8::10]:8080", "2001:db8::10"},
		{"the node by its address", v.node, "tcp", "10.0.0.10:8080", "10.0.0.10"},
		{"the node by another of its addresses", v.node, "tcp", "10.0.0.20:8080", "10.0.0.20"},
		{"the node by IPv6", v.node, "tcp", "[2001:db8::10]:9090", "2001:db8::10"},
		{"the node by its loopback", v.node, "tcp", "127.0.0.1:8080", "10.0.0.10"},
		{"the node by its loopback for a pod of ENI 1", v.node, "tcp", "127.0.0.1:9090", "10.0.0.10"},
		{"the node by its loopback, UDP", v.node, "udp", "127.0.0.1:9090", "10.0.0.10"},
		{"a port of the loopback only", v.node, "tcp", "127.0.0.1:8084", "10.0.0.10"},
		{"a port of the loopback only, from outside", out, "tcp", "10.0.0.10:8084", "refused"},
		{"straight to the pod", out, "tcp", "10.0.0.21:80", internet4},
		{"the pod's own port at the node", out, "tcp", "10.0.0.10:80", "refused"},
	}
}

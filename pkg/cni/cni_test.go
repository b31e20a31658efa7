package cni

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// lab is a node, in the namespace of the tests, with a node state of its own.
type lab struct {
	t testing.TB
	*Plugin
	now time.Duration
}

// newLab makes a node of two ENIs with two addresses each, of the families.
func newLab(t testing.TB, s ipam.Settings) *lab {
	t.Helper()
	nettest.Need(t)
	l := &lab{t: t, now: 100 * time.Second}
	l.Plugin = &Plugin{Cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")},
		Now: func() time.Duration { return l.now }, Log: slog.New(slog.DiscardHandler)}
	s.MarkMask, s.CoolDown = ipam.DefaultMarkMask, 30*time.Second
	if s.Families == nil {
		s.Families = []eni.Family{eni.IPv4}
	}
	state := &ipam.State{Settings: s}
	for i, dev := range []string{"eth0", "eth1"} {
		nettest.Run(t, "ip", "link", "add", dev, "mtu", "9001", "type", "veth", "peer", "name", dev+"-far")
		t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", dev) })
		state.ENIs = append(state.ENIs, eni.Interface{ID: "eni-" + dev, Index: i, Device: dev, MTU: 9001,
			V4: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d0/24", i+1)), Gateway: netip.MustParseAddr("10.0.0.1")},
			V6: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d0/64", i+1)), Gateway: netip.MustParseAddr("2001:db8::1")}})
		for _, f := range s.Families {
			for k := 1; k <= 2; k++ {
				a := netip.MustParseAddr(fmt.Sprintf("10.0.0.%d%d", i+1, k))
				if f == eni.IPv6 {
					a = netip.MustParseAddr(fmt.Sprintf("2001:db8::%d%d", i+1, k))
				}
				state.Addresses = append(state.Addresses, eni.Address{Addr: a, ENI: i})
			}
		}
	}
	if err := l.Cache.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return state, nil }); err != nil {
		t.Fatal(err)
	}
	if s.Routing == ipam.Map {
		l.setTable(state)
		t.Cleanup(func() { nettest.Run(t, "nft", "delete table inet enipool") })
	}
	t.Cleanup(l.nothingLeft)
	return l
}

// setTable makes the node's nftables table what the node state asks for: an agent does that before
// it writes the node state.
func (l *lab) setTable(s *ipam.State) {
	nettest.Run(l.t, "nft", "add table inet enipool; delete table inet enipool; "+netconf.NewFirewall(s).Table().String())
}

// routingMap is the node's nftables table.
func (l *lab) routingMap() (table string) {
	l.view(func(s *ipam.State) { table = netconf.NewFirewall(s).Table().String() })
	return table
}

// nothingLeft is checked after each test, when its pods are gone.
func (l *lab) nothingLeft() {
	if links := nettest.Run(l.t, "ip", "-br", "link"); strings.Contains(links, "eni") {
		l.t.Errorf("links left over:\n%s", links)
	}
	if rules := nettest.Run(l.t, "ip", "rule") + nettest.Run(l.t, "ip", "-6", "rule"); strings.Contains(rules, "proto 69") || strings.Contains(rules, "proto 70") {
		l.t.Errorf("rules left over:\n%s", rules)
	}
	l.view(func(s *ipam.State) {
		if err := s.Check(); err != nil {
			l.t.Errorf("the node state contradicts itself: %v", err)
		}
	})
}

func newHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func (l *lab) view(fn func(*ipam.State)) {
	l.t.Helper()
	if err := l.Cache.View(context.Background(), func(s *ipam.State) error { fn(s); return nil }); err != nil {
		l.t.Fatal(err)
	}
}

// takenAddresses returns the addresses of the node state that are not free, as "address state owner".
func (l *lab) takenAddresses() string {
	var lines []string
	l.view(func(s *ipam.State) {
		for _, a := range s.Addresses {
			if a.State != eni.Free {
				line := a.Addr.String() + " " + a.State.String()
				if a.Owner != nil {
					line += " " + a.Owner.Container
				}
				lines = append(lines, line)
			}
		}
	})
	return strings.Join(lines, "\n")
}

// request makes the request that a runtime would for the sandbox.
func (l *lab) request(id string, netns string, conf string, lenient bool) (Request, error) {
	c, confErr := config.ParsePlugin([]byte(conf))
	return NewRequest(c, confErr, id, netns, "eth0", "K8S_POD_NAMESPACE=default;K8S_POD_NAME="+id, lenient)
}

const plain = `{"cniVersion":"1.0.0","name":"pods","type":"enipool","waitForAddress":"0s"}`

func withPrev(t testing.TB, conf string, res *current.Result) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(conf), &fields); err != nil {
		t.Fatal(err)
	}
	prev, err := res.GetAsVersion(fields["cniVersion"].(string))
	if err != nil {
		t.Fatal(err)
	}
	fields["prevResult"] = prev
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (l *lab) add(id, netns, conf string) (*current.Result, error) {
	r, err := l.request(id, netns, conf, false)
	if err != nil {
		return nil, err
	}
	var res *current.Result
	err = l.Add(context.Background(), r, func(got *current.Result) error { res = got; return nil })
	return res, err
}

func (l *lab) mustAdd(id, netns, conf string) *current.Result {
	l.t.Helper()
	res, err := l.add(id, netns, conf)
	if err != nil {
		l.t.Fatalf("add %s: %v", id, err)
	}
	return res
}

func (l *lab) mustDel(id, netns, conf string) {
	l.t.Helper()
	r, err := l.request(id, netns, conf, true)
	if err == nil {
		err = l.Del(context.Background(), r)
	}
	if err != nil {
		l.t.Fatalf("del %s: %v", id, err)
	}
}

func (l *lab) check(id, netns, conf string, res *current.Result) error {
	r, err := l.request(id, netns, withPrev(l.t, conf, res), false)
	if err != nil {
		return err
	}
	return l.Check(context.Background(), r)
}

func hostDev(id string) string {
	return netconf.HostDevice(eni.Key{Network: "pods", Container: id, IfName: "eth0"})
}

func parse(conf string) (config.Plugin, error) { return config.ParsePlugin([]byte(conf)) }

// kill ends a sandbox without a DEL, as a node does that loses one.
func (l *lab) kill(name string) {
	l.t.Helper()
	if err := (isolate.Namespace{Name: name}).Remove(); err != nil {
		l.t.Fatal(err)
	}
	l.waitForNoLink(hostDev(name))
}

package node

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/events"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// othersPool has 10.0.0.1 free, .2 held and .3 a pod's.
func othersPool() *ipam.State {
	s := &ipam.State{}
	for i, state := range []eni.State{eni.Free, eni.Held, eni.Used} {
		s.Addresses = append(s.Addresses, eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), State: state})
	}
	return s
}

func TestWhatOthersChangeIsHeardWhereItConcernsThePool(t *testing.T) {
	about := func(addr string, change func(*events.Event)) events.Event {
		e := events.Event{Kind: events.Route, Prefix: netip.PrefixFrom(netip.MustParseAddr(addr), 32), Protocol: 3}
		if change != nil {
			change(&e)
		}
		return e
	}
	gone := func(e *events.Event) { e.Gone = true }
	of := func(k events.Kind) func(*events.Event) { return func(e *events.Event) { e.Kind = k } }
	for name, tt := range map[string]struct {
		e    events.Event
		want bool
	}{
		"a route to a free address":          {about("10.0.0.1", nil), true},
		"a rule about it":                    {about("10.0.0.1", of(events.Rule)), true},
		"the node gets it":                   {about("10.0.0.1", of(events.Address)), true},
		"a neighbour that somebody set":      {about("10.0.0.1", func(e *events.Event) { e.Kind, e.Permanent = events.Neighbour, true }), true},
		"one that the kernel learned":        {about("10.0.0.1", of(events.Neighbour)), false},
		"a route to an address of a pod":     {about("10.0.0.3", nil), false},
		"our own route":                      {about("10.0.0.1", func(e *events.Event) { e.Protocol = netconf.PodsProtocol }), false},
		"our own rule":                       {about("10.0.0.1", func(e *events.Event) { e.Kind, e.Protocol = events.Rule, netconf.Protocol }), false},
		"a route to somewhere else":          {about("192.0.2.1", nil), false},
		"a route to a subnet":                {events.Event{Kind: events.Route, Prefix: netip.MustParsePrefix("10.0.0.0/24")}, false},
		"a held address loses its route":     {about("10.0.0.2", gone), true},
		"a free one loses what nobody knew":  {about("10.0.0.1", gone), false},
		"a pod's neighbour goes with it":     {about("10.0.0.3", func(e *events.Event) { e.Kind, e.Gone = events.Neighbour, true }), false},
		"a link goes, with its routes":       {events.Event{Kind: events.Link, Gone: true}, true},
		"a link goes down":                   {events.Event{Kind: events.Link, Toggled: true}, true},
		"a link comes up":                    {events.Event{Kind: events.Link, Toggled: true, Up: true}, false},
		"so much that it could not be heard": {events.Event{Kind: events.Overflow}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := NewOthers(fixed(othersPool()))
				ctx, stop := context.WithCancel(t.Context())
				go o.Run(ctx)
				o.Note(tt.e)
				time.Sleep(time.Second)
				synctest.Wait()
				if got := len(o.Changed()) > 0; got != tt.want {
					t.Errorf("told %v, want %v", got, tt.want)
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

// A routing daemon that changes thousands of routes a second costs two looks at the
// pool a second, and bounded memory.
func TestAFloodOfOthersRoutesCostsNoMoreThanTwoLooksASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		o := NewOthers(func(_ context.Context, fn func(*ipam.State) error) error {
			looks.Add(1)
			return fn(othersPool())
		})
		ctx, stop := context.WithCancel(t.Context())
		go o.Run(ctx)
		for i := range 100_000 {
			o.Note(events.Event{Kind: events.Route, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)}), 32)})
			if i%1000 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			o.mu.Lock()
			n := len(o.noted.fresh)
			o.mu.Unlock()
			if n > mostNoted {
				t.Fatalf("%d addresses are kept", n)
			}
		}
		if n := looks.Load(); n > 22 {
			t.Errorf("%d looks in 10 s", n)
		}
		stop()
		synctest.Wait()
	})
}

// The kernel does announce all that this rests on.
func TestTheKernelAnnouncesWhatOthersTakeAndLetGo(t *testing.T) {
	n, initial := newNode(t, 2)
	initial.MarkHeld(map[netip.Addr]string{initial.Addresses[1].Addr: "a pod"}, 0)
	free, held := initial.Addresses[0].Addr, initial.Addresses[1].Addr
	n.put(t, initial)
	o := NewOthers(n.Cache.View)
	var err error
	if n.Watch, err = NewWatch(n.Cache, o.Note, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go o.Run(ctx)
	go n.Watch.Run(ctx)
	for _, line := range []string{
		fmt.Sprintf("route add %s/32 dev lo", free), fmt.Sprintf("rule add priority 1536 from %s lookup 2", free),
		fmt.Sprintf("addr add %s/32 dev eth1", free), fmt.Sprintf("neigh add %s lladdr 02:00:00:00:00:09 dev eth1 nud permanent", free),
		fmt.Sprintf("route add %s/32 dev lo", held), fmt.Sprintf("route del %s/32 dev lo", held),
		"link add gone type veth peer name gone-far", "link set gone up", "link del gone",
	} {
		for len(o.Changed()) > 0 {
			<-o.Changed()
		}
		nettest.Run(t, "ip", strings.Fields(line)...)
		if line[:5] == "link " && !strings.HasPrefix(line, "link del") {
			continue
		}
		select {
		case <-o.Changed():
		case <-time.After(10 * time.Second):
			t.Errorf("nothing was heard of: ip %s", line)
		}
	}
	nettest.Run(t, "ip", "rule", "del", "priority", "1536", "from", free.String(), "lookup", "2")
	nettest.Run(t, "ip", "route", "del", free.String()+"/32", "dev", "lo")
}

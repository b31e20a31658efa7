package cni

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// ofTopology is the configuration as a runtime sends it for a pod of a topology.
func ofTopology(conf string) string {
	return strings.TrimSuffix(conf, "}") + `,"runtimeConfig":{"` + config.AnnotationsCapability + `":{"` + eni.TopologyAnnotation + `":"db","other":"x"}}}`
}

// reserve keeps an address for the pods of that name in the namespace default, "" for nobody yet.
func (l *lab) reserve(addr, pod string) {
	l.t.Helper()
	l.change(func(s *ipam.State) {
		r := eni.Reservation{Topology: "db", Namespace: "default", Pod: pod}
		if pod == "" {
			r.Namespace = ""
		}
		if got := s.Reserve(map[netip.Addr]eni.Reservation{netip.MustParseAddr(addr): r}, l.now); len(got) != 1 {
			l.t.Errorf("%s can't be reserved for %s", addr, pod)
		}
	})
}

// change writes another node state, as an agent does.
func (l *lab) change(fn func(*ipam.State)) {
	l.t.Helper()
	err := l.Cache.Replace(context.Background(), func(s *ipam.State, err error) (*ipam.State, error) {
		if err == nil {
			fn(s)
		}
		return s, err
	})
	if err != nil {
		l.t.Error(err)
	}
}

// addSandbox is add for a pod that has more sandboxes than one.
func (l *lab) addSandbox(id, pod, netns, conf string) (*current.Result, error) {
	c, confErr := config.ParsePlugin([]byte(conf))
	r, err := NewRequest(c, confErr, id, netns, "eth0", "K8S_POD_NAMESPACE=default;K8S_POD_NAME="+pod, false)
	if err != nil {
		return nil, err
	}
	var res *current.Result
	err = l.Add(context.Background(), r, func(got *current.Result) error { res = got; return nil })
	return res, err
}

// wantWaits wants the error of an ADD that waits in vain.
func wantWaits(t *testing.T, err error, text string) {
	t.Helper()
	if e := Error(err); err == nil || e.Code != types.ErrTryAgainLater || !strings.HasPrefix(e.Msg, text) {
		t.Errorf("%v, want code 11: %s", err, text)
	}
}

func wantAddress(t *testing.T, res *current.Result, err error, addr string) {
	t.Helper()
	if err != nil || len(res.IPs) != 1 || res.IPs[0].Address.IP.String() != addr {
		t.Fatalf("got %v, %v; want %s", res, err, addr)
	}
}

func TestAPodGetsWhatIsReservedForItAndNobodyElseDoes(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.reserve("10.0.0.11", "db-0")
	l.reserve("10.0.0.22", "")
	a, b := nettest.NewNetns(t, "a"), nettest.NewNetns(t, "b")
	wantAddress(t, l.mustAdd("a", a.Path, plain), nil, "10.0.0.12") // the first that is general
	wantAddress(t, l.mustAdd("b", b.Path, plain), nil, "10.0.0.21")
	_, err := l.add("c", nettest.NewNetns(t, "c").Path, plain)
	wantWaits(t, err, "no free ipv4 address: 4 addresses on 2 ENIs, 2 used, 0 cooling, 2 reserved for other pods")
	for range 2 { // after its DEL it has its address again at once
		ns := nettest.NewNetns(t, "db-0")
		res, err := l.add("db-0", ns.Path, ofTopology(plain))
		wantAddress(t, res, err, "10.0.0.11")
		if err := l.check("db-0", ns.Path, plain, res); err != nil {
			t.Error(err)
		}
		if got, want := l.takenAddresses(), "10.0.0.11 used db-0\n10.0.0.12 used a\n10.0.0.21 used b\n10.0.0.22 reserved"; got != want {
			t.Errorf("node state:\n%s\nwant:\n%s", got, want)
		}
		l.mustDel("db-0", ns.Path, ofTopology(plain))
		if got, want := l.takenAddresses(), "10.0.0.11 reserved\n10.0.0.12 used a\n10.0.0.21 used b\n10.0.0.22 reserved"; got != want {
			t.Errorf("node state:\n%s\nwant:\n%s", got, want)
		}
		ns.Delete()
	}
	l.mustDel("a", a.Path, plain)
	l.mustDel("b", b.Path, plain)
}

// An ADD of a runtime that passes no annotations gets what is reserved for its pod all the same.
func TestWithoutAnAnnotationThePodGetsWhatIsReservedForIt(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.reserve("10.0.0.21", "db-0")
	ns := nettest.NewNetns(t, "db-0")
	wantAddress(t, l.mustAdd("db-0", ns.Path, plain), nil, "10.0.0.21")
	l.mustDel("db-0", ns.Path, plain)
}

func TestAPodWithoutItsAddressGetsNoOther(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	ns := nettest.NewNetns(t, "db-0")
	_, err := l.add("db-0", ns.Path, ofTopology(plain))
	wantWaits(t, err, "pod default/db-0 waits for its address of topology db: operator: none is reserved for it on this node yet")
	l.change(func(s *ipam.State) { s.Settings.Gated = []string{"default"} })
	_, err = l.add("db-0", ns.Path, plain)
	wantWaits(t, err, "pod default/db-0 waits for an address reserved for it, as each pod of the namespace default must: none is reserved for it on this node yet; the agent does that for a pod without a topology")
	_, err = l.add("db-0", ns.Path, strings.Replace(ofTopology(plain), `":"db"`, `":7`, 1))
	if err == nil {
		t.Error("an annotation that can't be read is none")
	}
	if got := l.takenAddresses(); got != "" {
		t.Errorf("node state:\n%s", got)
	}
	if got := l.pendingADDs(); got != "" {
		t.Errorf("the agent is asked for addresses that would not help: %s", got)
	}
}

// signal is closed by the first line of the log that has the text.
type signal struct {
	slog.Handler
	text string
	seen chan struct{}
	once sync.Once
}

func (s *signal) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, s.text) {
		s.once.Do(func() { close(s.seen) })
	}
	return nil
}

func (s *signal) Enabled(context.Context, slog.Level) bool { return true }

func TestAPodThatWaitsIsServedAsSoonAsItsAddressIsReserved(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	s := &signal{Handler: slog.DiscardHandler, text: "waits for what is reserved", seen: make(chan struct{})}
	l.Log = slog.New(s)
	ns := nettest.NewNetns(t, "db-0")
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := l.add("db-0", ns.Path, ofTopology(patient))
		if err != nil || res.IPs[0].Address.IP.String() != "10.0.0.21" {
			t.Errorf("got %v, %v", res, err)
		}
	}()
	<-s.seen
	other := nettest.NewNetns(t, "other")
	wantAddress(t, l.mustAdd("other", other.Path, plain), nil, "10.0.0.11") // one that waits keeps nobody waiting
	l.reserve("10.0.0.21", "db-0")
	<-done
	l.mustDel("db-0", ns.Path, plain)
	l.mustDel("other", other.Path, plain)
}

// Two sandboxes of one pod: the second has the address once the first is gone, never before.
func TestASecondSandboxTakesTheAddressOnlyWhenTheFirstIsGone(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.reserve("10.0.0.21", "db-0")
	first, second := nettest.NewNetns(t, "first"), nettest.NewNetns(t, "second")
	res, err := l.addSandbox("first", "db-0", first.Path, ofTopology(plain))
	wantAddress(t, res, err, "10.0.0.21")
	_, err = l.addSandbox("second", "db-0", second.Path, ofTopology(plain))
	wantWaits(t, err, "pod default/db-0 waits for its address of topology db: its earlier sandbox first has 10.0.0.21 until the runtime ends that")
	if got, want := l.takenAddresses(), "10.0.0.21 used first"; got != want {
		t.Errorf("node state:\n%s\nwant:\n%s", got, want)
	}
	l.kill("first")
	res, err = l.addSandbox("second", "db-0", second.Path, ofTopology(plain))
	wantAddress(t, res, err, "10.0.0.21")
	l.mustDel("first", first.Path, plain) // late: the second one keeps it
	if got, want := l.takenAddresses(), "10.0.0.21 used second"; got != want {
		t.Errorf("node state:\n%s\nwant:\n%s", got, want)
	}
	l.mustDel("second", second.Path, plain)
}

// What another program uses stays reserved: nobody else says for whom.
func TestAReservedAddressThatOthersHoldStaysReserved(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.reserve("10.0.0.21", "db-0")
	nettest.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", "br0") })
	nettest.Run(t, "ip", "link", "set", "br0", "up")
	nettest.Run(t, "ip", "route", "add", "10.0.0.21", "dev", "br0")
	_, err := l.add("db-0", nettest.NewNetns(t, "db-0").Path, ofTopology(plain))
	wantWaits(t, err, "")
	if got, want := l.takenAddresses(), "10.0.0.21 reserved"; got != want {
		t.Errorf("node state:\n%s\nwant:\n%s", got, want)
	}
}

// The runtime has passed the annotations of the pod, and no topology is among them: it gets an address of the node's own, and what is kept for its name stays.
func TestAPodThatIsOfNoTopologyAnyMoreGetsAnAddressForAnyPod(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.reserve("10.0.0.11", "db-0")
	ofNone := strings.Replace(ofTopology(plain), `"`+eni.TopologyAnnotation+`":"db",`, "", 1)
	ns := nettest.NewNetns(t, "db-0")
	res, err := l.add("db-0", ns.Path, ofNone)
	wantAddress(t, res, err, "10.0.0.12")
	l.mustDel("db-0", ns.Path, ofNone)
}

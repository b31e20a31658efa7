package e2e

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/nettest"
	nodepkg "github.com/enipool/enipool/pkg/node"
)

func (f *fast) steady(to string) (stop func() (sent, back int)) {
	f.t.Helper()
	return steady(f.t, f.internet, to)
}

// Connections don't notice that the fast path goes on and off, again and again.
func TestSwitchingTheFastPathLosesNoPacket(t *testing.T) {
	f := newFast(t, mapNft())
	f.iptables("filter", kubeForward...)
	f.keep()
	f.needOn()
	ttlEcho(t, f.pods["b"], "7")
	pingPong(t, f.pods["b"], "80")
	c := dial(t, f.internet, "10.0.0.21:80")
	stop := f.steady("10.0.0.21:7")
	for range 5 {
		exchange(t, c, 50)
		f.path.Switch(false)
		f.keep()
		if _, err := os.Stat(bpf.Folder(f.n.Cache.Path)); err == nil {
			t.Error("a fast path that is off left something behind")
		}
		exchange(t, c, 50)
		f.path.Switch(true)
		f.keep()
		f.needOn()
	}
	if sent, back := stop(); sent < 50 || back != sent {
		t.Errorf("%d of %d datagrams came back", back, sent)
	}
	closes(t, c)
}

// A new pod gets the fast path when the node has come to rest, and a pod that takes
// over an address gets what is sent to it.
func TestANewPodHasTheFastPathAndAnAddressThatMovedIsFollowed(t *testing.T) {
	s := mapNft()
	s.CoolDown = 0 // the next pod gets the address at once
	f := newFast(t, s)
	f.needOn()
	ttlEcho(t, f.pods["b"], "7")
	c := udpSocket(t, f.internet, internet4+":5000", "10.0.0.21:7")
	for range 20 {
		echoed(t, c, 100)
	}
	f.plugin("DEL", "b")
	f.pods["c"] = nettest.NewNetns(t, "pod-c")
	f.plugin("ADD", "c")
	t.Cleanup(func() { f.plugin("DEL", "c") })
	if addrs := f.pods["c"].Run(t, "ip", "-4", "addr", "show", "eth0"); !strings.Contains(addrs, "10.0.0.21/32") {
		t.Fatalf("the new pod has another address: %s", addrs)
	}
	ttlEcho(t, f.pods["c"], "7")
	f.keep()
	got := f.jumped(func() {
		for range 20 {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			if _, err := c.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 100)); err != nil {
				t.Fatalf("the pod that has the address now is not reached: %v", err)
			}
		}
	})
	if got.In == 0 || got.Out == 0 {
		t.Errorf("the new pod's packets do not jump: %+v", got)
	}
}

// A pod whose sending is limited by a queue at its link keeps its limit: its
// packets go by the queue, those of others jump.
func TestALinkThatOthersLookAtIsLeftToThem(t *testing.T) {
	f := newFast(t, mapNft())
	ttlEcho(t, f.pods["a"], "7")
	ttlEcho(t, f.pods["b"], "7")
	var dev string
	for _, field := range strings.Fields(f.node.Run(t, "ip", "route", "get", "10.0.0.21")) {
		if strings.HasPrefix(field, "eni") {
			dev = field
		}
	}
	f.node.Run(t, "tc", "qdisc", "add", "dev", dev, "ingress")
	f.keep()
	f.needOn()
	for _, tt := range []struct {
		to   string
		jump bool
	}{{"10.0.0.21:7", false}, {"10.0.0.11:7", true}} {
		c := udpSocket(t, f.internet, internet4+":0", tt.to)
		got := f.jumped(func() {
			for range 20 {
				echoed(t, c, 100)
			}
		})
		if (got.Out > 0) != tt.jump {
			t.Errorf("%s: %d packets of the pod jumped, want any: %v", tt.to, got.Out, tt.jump)
		}
	}
}

// Where nothing can be pinned the status says so, and pods start as ever.
func TestWithoutABPFFileSystemPodsStartAndTheCauseIsTold(t *testing.T) {
	v := newVPC(t, mapNft())
	f := &nodepkg.FastPath{Cache: v.n.Cache}
	f.Log = slog.New(slog.DiscardHandler)
	f.Switch(true)
	v.must(v.node.Do(func() error { f.Keep(t.Context()); return nil }))
	if off := strings.Join(f.Status().Off, "\n"); !strings.HasPrefix(off, "the fast path needs a bpf file system, ") || !strings.HasSuffix(off, ": mount -t bpf bpf "+bpf.FileSystem) {
		t.Errorf("the fast path is off because of %q", off)
	}
	if _, err := os.Stat(filepath.Join(bpf.FileSystem, "enipool")); err == nil {
		t.Error("something was made where no bpf file system is")
	}
}

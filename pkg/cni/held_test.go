package cni

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// foreignPod makes what aws-vpc-cni leaves on a node for a pod: a veth pair called
// as ours are, the host route in the main table, and its rules.
func foreignPod(t *testing.T, dev, addr string) {
	t.Helper()
	ip := func(line string) { nettest.Run(t, "ip", strings.Fields(line)...) }
	ip("link add " + dev + " type veth peer name far" + dev[3:])
	ip("link set " + dev + " up")
	ip("route add " + addr + "/32 dev " + dev + " scope link")
	ip("rule add priority 512 to " + addr + " lookup main")
	t.Cleanup(func() {
		ip("rule del priority 512 to " + addr + " lookup main")
		ip("link del " + dev)
	})
}

func address(t *testing.T, l *lab, id, netns string) string {
	t.Helper()
	return l.mustAdd(id, netns, plain).IPs[0].Address.IP.String()
}

// The node state calls free what the pods of another plugin have: a node whose
// aws-vpc-cni was taken away, and no agent has looked yet.
func TestAddLeavesThePodsOfAnotherPluginAlone(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run(routing.String(), func(t *testing.T) {
			l := newLab(t, ipam.Settings{Routing: routing})
			foreignPod(t, "eni5f8c1a2b3c4", "10.0.0.11")
			foreignPod(t, "eni6f8c1a2b3c4", "10.0.0.21")
			before := nettest.Run(t, "ip", "route") + nettest.Run(t, "ip", "rule", "show", "priority", "512")
			ns := nettest.NewNetns(t, "a")
			if got := address(t, l, "a", ns.Path); got != "10.0.0.12" {
				t.Errorf("the pod got %s, want 10.0.0.12", got)
			}
			// All that is held was noted at once.
			if got, want := l.takenAddresses(), "10.0.0.11 held\n10.0.0.12 used a\n10.0.0.21 held"; got != want {
				t.Errorf("the pool has\n%s\nwant\n%s", got, want)
			}
			l.mustDel("a", ns.Path, plain)
			if after := nettest.Run(t, "ip", "route") + nettest.Run(t, "ip", "rule", "show", "priority", "512"); before != after {
				t.Errorf("the others' routes and rules were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

func TestAddSaysWhoHasTheAddressesThatItCantGive(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	for i, addr := range []string{"10.0.0.11", "10.0.0.12", "10.0.0.21"} {
		foreignPod(t, "eni5f8c1a2b3c"+string(rune('0'+i)), addr)
	}
	nettest.Run(t, "ip", "addr", "add", "10.0.0.22/32", "dev", "eth1") // by a service that sets up NICs
	ns := nettest.NewNetns(t, "a")
	_, err := l.add("a", ns.Path, plain)
	if err == nil || Error(err).Code != types.ErrTryAgainLater {
		t.Fatalf("add: %v, want code 11", err)
	}
	for _, want := range []string{"4 held by others", "10.0.0.11: route 10.0.0.11 dev eni5f8c1a2b3c0 scope link (table main)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	var none *ipam.Exhausted
	if !errors.As(err, &none) || none.Held != 4 {
		t.Errorf("held: %+v", none)
	}
	l.view(func(s *ipam.State) {
		if a := s.Addresses[3]; a.State != eni.Held || a.HeldBy != "address 10.0.0.22/32 dev eth1" {
			t.Errorf("the node's own address: %+v", a)
		}
	})
}

// A pod of ours that the node state has lost is no less a pod.
func TestAddLeavesAPodAloneThatTheNodeStateForgot(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	a, b := nettest.NewNetns(t, "a"), nettest.NewNetns(t, "b")
	had := address(t, l, "a", a.Path)
	err := l.Cache.Replace(t.Context(), func(s *ipam.State, _ error) (*ipam.State, error) {
		at := slices.IndexFunc(s.Addresses, func(a eni.Address) bool { return a.State == eni.Used })
		s.Addresses[at] = eni.Address{Addr: s.Addresses[at].Addr, ENI: s.Addresses[at].ENI}
		return s, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := address(t, l, "b", b.Path); got == had {
		t.Errorf("%s went to a second pod", got)
	}
	l.mustDel("a", a.Path, plain) // cleans what the node state does not know
	l.mustDel("b", b.Path, plain)
}

// Where one family's address is another's, the pod gets both of the next.
func TestAddTakesBothFamiliesAnewWhereOneIsHeld(t *testing.T) {
	l := newLab(t, ipam.Settings{Families: []eni.Family{eni.IPv4, eni.IPv6}})
	nettest.Run(t, "ip", "-6", "route", "add", "2001:db8::11/128", "dev", "lo")
	t.Cleanup(func() { nettest.Run(t, "ip", "-6", "route", "del", "2001:db8::11/128", "dev", "lo") })
	ns := nettest.NewNetns(t, "a")
	res := l.mustAdd("a", ns.Path, plain)
	if got := res.IPs[1].Address.IP.String(); got != "2001:db8::12" {
		t.Errorf("the pod got %s, want 2001:db8::12", got)
	}
	if got, want := l.takenAddresses(), "10.0.0.11 used a\n2001:db8::11 held\n2001:db8::12 used a"; got != want {
		t.Errorf("the pool has\n%s\nwant\n%s", got, want)
	}
	l.mustDel("a", ns.Path, plain)
}

// unseen runs fn where the namespace's mount is not seen, only the file below it, as in
// a container that does not get the node's mounts.
func unseen(t *testing.T, path string, fn func()) {
	t.Helper()
	err := isolate.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return err
		}
		fn()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Who reclaims may see the file of a live pod's namespace and not what is mounted on it.
func TestALivePodIsNotDeadBecauseItsMountIsNotSeen(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	delegated, veth := nettest.NewNetns(t, "d"), nettest.NewNetns(t, "v")
	const ipamConf = `{"cniVersion":"1.0.0","name":"pods","type":"ptp","ipam":{"type":"enipool","waitForAddress":"0s"}}`
	l.mustAdd("d", delegated.Path, ipamConf)
	l.mustAdd("v", veth.Path, plain)
	reclaim := func() string {
		released, err := l.Reclaim(t.Context(), anyOwner)
		if err != nil {
			t.Error(err)
		}
		var names []string
		for _, a := range released {
			names = append(names, a.Owner.Container)
		}
		return strings.Join(names, " ")
	}
	unseen(t, delegated.Path, func() {
		if got := reclaim(); got != "" {
			t.Errorf("reclaimed from %s, which lives", got)
		}
	})
	// A link of ours ends with its namespace: without it the pod is gone.
	l.kill("v")
	if err := os.WriteFile(veth.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := reclaim(); got != "v" {
		t.Errorf("reclaimed from %q, want v", got)
	}
	l.mustDel("d", delegated.Path, ipamConf)
}

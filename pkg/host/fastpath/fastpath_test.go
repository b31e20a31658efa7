package fastpath

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// folder is one of a bpf file system that goes with the test.
func folder(t *testing.T) string {
	t.Helper()
	nettest.Need(t)
	nettest.MountBPF(t)
	return bpf.Folder("/run/enipool/node.cache")
}

func veth(t *testing.T) (dev string, index int) {
	t.Helper()
	nettest.Run(t, "ip", "link", "add", "eth7", "type", "veth", "peer", "name", "eth7-far")
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", "eth7") })
	l, err := net.InterfaceByName("eth7")
	if err != nil {
		t.Fatal(err)
	}
	return "eth7", l.Index
}

func attachAll(p *Path, devices ...string) error {
	_, err := p.Attach(devices, 16)
	return err
}

// An upgraded agent finds links with the program of the release before. At every
// moment each link has one of the two.
func TestAnotherReleasesProgramGivesWay(t *testing.T) {
	dir := folder(t)
	dev, index := veth(t)
	open := func(release string) *Path {
		p, err := openRelease(dir, release)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		if err := attachAll(p, dev); err != nil {
			t.Fatal(err)
		}
		have, err := attached(index)
		if err != nil || !slices.Equal(have, []ebpf.ProgramID{p.id}) {
			t.Errorf("%s: programs %v at the link, %v; want %v alone", release, have, err, p.id)
		}
		return p
	}
	old := open("earlier")
	if err := old.Tell(netconf.FastPath{Pool: []netconf.PoolMark{{Addr: netip.MustParseAddr("10.0.0.1"), Mark: 7}}}); err != nil {
		t.Fatal(err)
	}
	same := open("earlier")
	if same.id != old.id {
		t.Errorf("the same release started again has program %d, want the one that is there, %d", same.id, old.id)
	}
	var mark uint32
	if err := same.maps.pool.Lookup([4]byte{10, 0, 0, 1}, &mark); err != nil || mark != 7 {
		t.Errorf("what the program was told is gone: %d, %v", mark, err)
	}
	if now := open("now"); now.id == old.id {
		t.Error("another release has the same program")
	}
	open("earlier") // a downgrade
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
	if have, err := attached(index); err != nil || len(have) > 0 {
		t.Errorf("programs %v are left at the link, %v", have, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if err := Remove(dir); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}

// Our program leaves links to programs of others, and comes back.
func TestALinkWithAProgramOfOthersIsLeftToThem(t *testing.T) {
	dir := folder(t)
	dev, index := veth(t)
	p, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ours := func() bool {
		t.Helper()
		if err := attachAll(p, dev); err != nil {
			t.Fatal(err)
		}
		have, err := attached(index)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(have, p.id)
	}
	if !ours() {
		t.Error("a link that nobody looks at lacks the program")
	}
	other, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: nettest.Program(t, ebpf.SchedCLS, ebpf.AttachTCXIngress, -1), Attach: ebpf.AttachTCXIngress})
	if err != nil {
		t.Fatal(err)
	}
	if ours() {
		t.Error("the program stayed at a link where another one looks at packets")
	}
	other.Close()
	if !ours() {
		t.Error("the program did not come back")
	}
}

// The times are the kernel's own.
func TestTimesOfConntrackAreRead(t *testing.T) {
	nettest.Need(t)
	times, err := ReadTimes()
	if err != nil {
		t.Fatal(err)
	}
	if times.Tick < time.Millisecond || times.Tick > 10*time.Millisecond || times.TCP < time.Minute || times.UDP < time.Second {
		t.Errorf("read %+v", times)
	}
}

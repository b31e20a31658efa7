package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/status"
	"golang.org/x/sys/unix"
)

// What the cloud takes away behind our back is never handed out, and is replaced.
func TestWhatTheCloudTookAwayIsNotGivenOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "taken", limits: eni.Limits{ENIs: 1, V4: 17}})
	agent := s.start()
	s.poolOf(16)
	s.add("a")
	used, free := netip.MustParseAddr("10.0.1.3"), netip.MustParseAddr("10.0.1.4")
	s.must(s.account.SetUnmanaged("subnet-a", 1000)) // so that they don't come back
	s.must(s.account.TakeAway(used))
	s.must(s.account.TakeAway(free))
	s.must(s.account.SetUnmanaged("subnet-a", 1000)) // nor now
	s.told("one lost and 14 free", func(st status.Status) bool { return st.Addresses.Lost == 1 && st.Addresses.Free == 14 })
	agent.says(`msg=quarantine addresses="10.0.1.3 10.0.1.4" count=2 reason="the cloud does not have them on this node any more"`)
	if out := s.show(); !strings.Contains(out, "1 address that pods use and the cloud took away") {
		t.Errorf("pool show:\n%s", out)
	}
	s.del("a")
	s.eventually("they are gone from the cache", func() error {
		cached, err := s.view()
		if err != nil {
			return err
		}
		for _, a := range cached.Addresses {
			if a.Addr == used || a.Addr == free {
				return fmt.Errorf("%s is %s", a.Addr, a.State)
			}
		}
		return nil
	})
	s.must(s.account.SetUnmanaged("subnet-a", 0))
	s.add("b")
	s.reach(internet4, "b")
	s.poolOf(16)
}

// An ENI that is detached behind our back takes its pods' traffic with it, but no
// other's; and new pods find an address.
func TestAnENIThatIsDetachedHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "detached", limits: tiny})
	s.configure("pool.batch: 2")
	agent := s.start()
	s.poolOf(2)
	s.add("a", "b", "c") // c is on ENI 1
	s.poolOf(4)
	s.tickAfter()
	tr := s.talk("a")
	nics := s.account.Snapshot().Nodes["n"]
	s.must(s.account.Detach(nics[1].ID))
	// The status tells of it only until another ENI has the place of the one that is gone.
	agent.says(`msg=quarantine addresses="10.0.1.6 10.0.1.7" count=2 reason="the cloud does not have them on this node any more"`)
	s.add("d")
	s.reach(internet4, "a", "b", "d")
	s.del("c")
	s.eventually("it is in neither cache nor cloud", func() error {
		cached, err := s.view()
		if err == nil && slices.ContainsFunc(cached.ENIs, func(e eni.Interface) bool { return e.ID == nics[1].ID }) {
			err = errors.New("it is in the cache")
		}
		for _, n := range s.account.Snapshot().Nodes["n"] {
			if n.ID == nics[1].ID {
				err = errors.Join(err, errors.New("it is in the cloud"))
			}
		}
		return err
	})
	s.add("e")
	s.reach(internet4, "a", "b", "d", "e")
	tr.unbroken(t)
}

// A link that the system names anew after it was attached, as udev does, stays the
// link of its ENI.
func TestAnENIsLinkMayGetAnotherName(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "renamed", limits: tiny})
	s.configure("pool.batch: 2")
	s.start()
	s.poolOf(2)
	s.add("a", "b", "c") // c is on ENI 1
	s.poolOf(4)
	s.node.Run(t, "sh", "-c", "ip link set eth1 down; ip link set eth1 name ens9; ip link set ens9 up")
	s.eventually("its new name in the cache", func() error {
		cached, err := s.view()
		if err == nil && cached.ENIs[1].Device != "ens9" {
			err = errors.New(cached.ENIs[1].Device)
		}
		return err
	})
	s.tickAfter()
	s.add("d")
	s.reach(internet4, "a", "b", "c", "d")
}

// A process that keeps the cache's lock is named, and the agent goes on when it is
// gone.
func TestWhoKeepsTheLockIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "lock"})
	agent := s.start()
	s.poolOf(16)
	f, err := os.Open(s.cache.Path + ".lock")
	s.must(err)
	defer f.Close()
	s.must(unix.Flock(int(f.Fd()), unix.LOCK_EX))
	agent.says(fmt.Sprintf(`level=ERROR msg="tick failed" error="[^"]*(%d|process)`, os.Getpid()))
	s.eventually("not ready, and why", func() error {
		code, body, err := s.get("/readyz")
		if err == nil && (code != 503 || !strings.Contains(body, fmt.Sprint(os.Getpid()))) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	if code, _, err := s.get("/healthz"); err != nil || code != 200 {
		t.Errorf("healthz: %d, %v", code, err)
	}
	s.must(unix.Flock(int(f.Fd()), unix.LOCK_UN))
	s.ready()
	s.add("web")
}

// A family that the instance can't have is named.
func TestAFamilyThatTheNodeCanNotHaveIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "nosix", limits: eni.Limits{ENIs: 3, V4: 10}})
	s.configure("families: [ipv4, ipv6]")
	s.start()
	s.told("the problem", func(st status.Status) bool {
		return strings.Contains(strings.Join(append(st.TargetCauses, st.Problem), " "), "ipv6")
	})
}

// Addresses that the cloud took from pods and gives to a new ENI, as its own even,
// are not that ENI's until the pods are gone. That keeps nothing else from the node.
func TestAnENIWithPodsFormerAddressesKeepsNoOtherOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "moved", limits: tiny})
	s.configure("pool.batch: 2")
	s.start()
	s.poolOf(2)
	s.must(s.account.SetUnmanaged("subnet-a", 1000))
	s.add("a", "b")
	for _, addr := range []string{"10.0.1.3", "10.0.1.4"} {
		s.must(s.account.TakeAway(netip.MustParseAddr(addr)))
	}
	s.eventually("an ENI that has them", func() error {
		if _, attached := s.attached(); attached != 2 {
			return errors.New("not yet")
		}
		return nil
	})
	s.must(s.account.SetUnmanaged("subnet-a", 0))
	s.eventually("the third pod's address", func() error { return s.try("ADD", "c", 5*time.Second) })
	s.reach(internet4, "c")
	s.del("a", "b")
	s.tickAfter()
	s.reach(internet4, "c")
}

package nodecache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// childJob, in the environment, makes the test binary a process that uses the
// cache at childPath, see children.
const (
	childJob  = "ENIPOOL_NODECACHE_JOB"
	childPath = "ENIPOOL_NODECACHE_PATH"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		if err := children[job](Cache{Path: os.Getenv(childPath), LockTimeout: time.Minute}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	nettest.Main(m)
}

var children = map[string]func(Cache) error{
	// hold keeps the lock until its standard input ends.
	"hold": func(c Cache) error {
		return c.Update(context.Background(), func(*ipam.State) error {
			fmt.Println("held")
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		})
	},
	// pick takes picks addresses, one at a time.
	"pick": func(c Cache) error {
		for i := range picks {
			addr, err := pick(c, fmt.Sprintf("child-%d-%d", os.Getpid(), i))
			if err != nil {
				return err
			}
			fmt.Println(addr)
		}
		return nil
	},
	// churn takes and gives back until it is killed.
	"churn": func(c Cache) error {
		for i := 0; ; i++ {
			name := fmt.Sprintf("churn-%d-%d", os.Getpid(), i)
			if _, err := pick(c, name); err != nil {
				return err
			}
			fmt.Println(i)
			err := c.Update(context.Background(), func(s *ipam.State) error { s.Free(key(name), SinceBoot()); return nil })
			if err != nil {
				return err
			}
		}
	},
	// reload writes the whole file again until it is killed.
	"reload": func(c Cache) error {
		for i := 0; ; i++ {
			err := c.Replace(context.Background(), func(s *ipam.State, err error) (*ipam.State, error) { return s, err })
			if err != nil {
				return err
			}
			fmt.Println(i)
		}
	},
}

const picks = 50

// child starts the test binary as a process of its own.
func child(t *testing.T, job string, c Cache) (cmd *exec.Cmd, in io.Closer, out *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+job, childPath+"="+c.Path)
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, stdin, bufio.NewScanner(stdout)
}

func pick(c Cache, name string) (addr netip.Addr, err error) {
	err = c.For(key(name)).Update(context.Background(), func(s *ipam.State) error {
		l, err := s.AssignPod(owner(name), "", SinceBoot())
		if err == nil {
			addr = l.Addresses[0].Addr
		}
		return err
	})
	return addr, err
}

func key(name string) eni.Key { return eni.Key{Network: "pods", Container: name, IfName: "eth0"} }

func owner(name string) eni.Owner {
	return eni.Owner{Key: key(name), Netns: "/run/netns/" + name, NetnsInode: 4026532000, Namespace: "default", Pod: name, UID: "u-" + name}
}

// small is a node state with something of everything.
func small() *ipam.State {
	web, db := owner("web"), owner("db")
	db.Kind, db.Pod, db.Namespace, db.UID, db.NetnsInode = eni.Delegated, "", "", "", 0
	return &ipam.State{
		Settings: ipam.Settings{SNAT: true, MarkMask: 0x00ff0000, CoolDown: 30 * time.Second,
			VPC:      []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/56")},
			Families: []eni.Family{eni.IPv4}},
		ENIs: []eni.Interface{
			{ID: "eni-a", Index: 0, Device: "eth0", MTU: 1500, V4: eni.Net{
				Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}},
			{ID: "eni-b", Index: 1, Device: "eth1", MTU: 9001,
				V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.20/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
				V6: eni.Net{Primary: netip.MustParsePrefix("2001:db8::20/64"), Gateway: netip.MustParseAddr("fe80::1")}},
		},
		Addresses: []eni.Address{
			{Addr: netip.MustParseAddr("10.0.0.11"), State: eni.Used, Since: 1234567 * time.Millisecond, Owner: &web},
			{Addr: netip.MustParseAddr("10.0.0.12"), State: eni.Cooling, Since: 7 * time.Millisecond},
			{Addr: netip.MustParseAddr("10.0.0.13")},
			{Addr: netip.MustParseAddr("10.0.0.21"), ENI: 1, State: eni.Used, Since: 40 * 24 * time.Hour, Owner: &db},
			{Addr: netip.MustParseAddr("10.0.0.22"), ENI: 1, State: eni.Releasing, Since: 2 * time.Second},
			{Addr: netip.MustParseAddr("2001:db8::abcd:21"), ENI: 1, Since: time.Second},
		},
	}
}

// pool is a node state of n free addresses that need no rest.
func pool(n int) *ipam.State {
	s := fullCache(n)
	s.Settings.CoolDown = 0
	for i := range s.Addresses {
		s.Addresses[i].State, s.Addresses[i].Owner = eni.Free, nil
	}
	return s
}

// newCache is a cache in a folder of its own with the node state in it.
func newCache(t testing.TB, s *ipam.State) Cache {
	t.Helper()
	c := Cache{Path: filepath.Join(t.TempDir(), "enipool", "node.cache")}
	put(t, c, s)
	return c
}

func put(t testing.TB, c Cache, s *ipam.State) {
	t.Helper()
	if err := c.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return s, nil }); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, c Cache) *ipam.State {
	t.Helper()
	var got *ipam.State
	if err := c.View(t.Context(), func(s *ipam.State) error { got = s; return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func bytesOf(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// diff compares node states, not what moves touched in them.
func diff(want, got *ipam.State, more ...cmp.Option) string {
	return cmp.Diff(want, got, append(more, cmpopts.IgnoreUnexported(ipam.State{}),
		cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty())...)
}

package cni

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// A DEL in any of these states succeeds, takes back what is the attachment's and
// touches nothing of anybody else's.
func TestDelSucceedsWhateverIsLeft(t *testing.T) {
	for _, tt := range []struct {
		name  string
		netns func(t *testing.T, own nettest.Netns) string // CNI_NETNS of the DEL
		conf  string
	}{
		{"namespace alive", func(_ *testing.T, own nettest.Netns) string { return own.Path }, plain},
		{"namespace empty in the request", func(*testing.T, nettest.Netns) string { return "" }, plain},
		{"namespace gone", func(_ *testing.T, own nettest.Netns) string { own.Delete(); return own.Path }, plain},
		{"plain file in its place", func(t *testing.T, own nettest.Netns) string {
			own.Delete()
			if err := os.WriteFile(own.Path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return own.Path
		}, plain},
		{"namespace of another pod", func(*testing.T, nettest.Netns) string { return "/run/netns/other" }, plain},
		{"namespace of the node", func(*testing.T, nettest.Netns) string { return "/proc/thread-self/ns/net" }, plain},
		{"prevResult is garbage", func(_ *testing.T, own nettest.Netns) string { return own.Path },
			`{"cniVersion":"1.0.0","name":"pods","type":"enipool","prevResult":"x"}`},
		{"options are of a wrong type", func(_ *testing.T, own nettest.Netns) string { return own.Path },
			`{"cniVersion":"1.0.0","name":"pods","type":"enipool","mtu":"big","waitForAddress":7}`},
	} {
		for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
			t.Run(tt.name+", routing "+routing.String(), func(t *testing.T) {
				l := newLab(t, ipam.Settings{Routing: routing})
				other, own := nettest.NewNetns(t, "other"), nettest.NewNetns(t, "own")
				res := l.mustAdd("other", other.Path, plain)
				l.mustAdd("own", own.Path, plain)
				netns := tt.netns(t, own)
				for range 2 { // runtimes repeat themselves
					l.mustDel("own", netns, tt.conf)
				}
				if got, want := l.takenAddresses(), "10.0.0.11 used other\n10.0.0.12 cooling"; got != want {
					t.Errorf("node state:\n%s\nwant:\n%s", got, want)
				}
				if err := l.check("other", other.Path, plain, res); err != nil {
					t.Errorf("the other pod: %v", err)
				}
				l.mustDel("other", other.Path, plain)
			})
		}
	}
}

func TestDelWithoutACacheStillCleansTheKernel(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run("routing "+routing.String(), func(t *testing.T) {
			l := newLab(t, ipam.Settings{Routing: routing})
			for _, id := range []string{"a", "b", "c"} { // c is on the second ENI
				l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
			}
			kept := l.Cache.Path + ".kept"
			if err := os.Rename(l.Cache.Path, kept); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "b", "c"} {
				l.mustDel(id, "", plain)
			}
			if err := os.Rename(kept, l.Cache.Path); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "b", "c"} {
				l.mustDel(id, "", plain)
			}
		})
	}
}

func TestALateDelOfAnOldSandboxLeavesTheNewOneAlone(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	old, fresh := nettest.NewNetns(t, "old"), nettest.NewNetns(t, "fresh")
	add := func(id, netns string) {
		r, err := l.request(id, netns, plain, false)
		r.Owner.Pod = "web-0" // both are sandboxes of one pod
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Add(t.Context(), r, discard); err != nil {
			t.Fatal(err)
		}
	}
	add("sandbox1", old.Path)
	add("sandbox2", fresh.Path)
	l.mustDel("sandbox1", fresh.Path, plain)
	if got, want := l.takenAddresses(), "10.0.0.11 cooling\n10.0.0.12 used sandbox2"; got != want {
		t.Errorf("node state:\n%s\nwant:\n%s", got, want)
	}
	if got := fresh.Run(t, "ip", "-o", "addr", "show", "dev", "eth0"); !strings.Contains(got, "10.0.0.12/32") {
		t.Errorf("the new sandbox lost its address:\n%s", got)
	}
	l.mustDel("sandbox2", fresh.Path, plain)
}

func TestGCFreesWhatTheRuntimeNoLongerKnows(t *testing.T) {
	const head = `{"cniVersion":"1.1.0","name":"pods","type":"enipool"`
	for _, tt := range []struct {
		name, conf, want string
	}{
		{"a list frees the others", head + `,"cni.dev/valid-attachments":[{"containerID":"alive","ifname":"eth0"}]}`,
			"10.0.0.11 used alive\n10.0.0.12 cooling\n10.0.0.21 cooling\n10.0.0.22 used foreign"},
		{"the newer key is read too", head + `,"cni.dev/attachments":[{"containerID":"alive","ifname":"eth0"}]}`,
			"10.0.0.11 used alive\n10.0.0.12 cooling\n10.0.0.21 cooling\n10.0.0.22 used foreign"},
		{"null says that nothing is alive", head + `,"cni.dev/valid-attachments":null}`,
			"10.0.0.11 cooling\n10.0.0.12 cooling\n10.0.0.21 cooling\n10.0.0.22 used foreign"},
		{"without a list only the provably dead go", head + `}`,
			"10.0.0.11 used alive\n10.0.0.12 used forgotten\n10.0.0.21 cooling\n10.0.0.22 used foreign"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, ipam.Settings{Routing: ipam.Rule})
			for _, id := range []string{"alive", "forgotten", "dead"} {
				l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
			}
			foreign := `{"cniVersion":"1.0.0","name":"others","type":"enipool"}`
			l.mustAdd("foreign", nettest.NewNetns(t, "foreign").Path, foreign)
			l.kill("dead")
			r, err := l.request("", "", tt.conf, false)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := l.GC(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if got := l.takenAddresses(); got != tt.want {
				t.Errorf("node state:\n%s\nwant:\n%s", got, tt.want)
			}
			for _, id := range []string{"alive", "forgotten"} {
				l.mustDel(id, "", plain)
			}
			l.mustDel("foreign", "", foreign)
		})
	}
}

func TestGCRemovesLinksThatNoRecordKnows(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.mustAdd("lost", nettest.NewNetns(t, "lost").Path, plain)
	// The record goes as it does when a node state is rebuilt by somebody careless.
	err := l.Cache.Update(t.Context(), func(s *ipam.State) error {
		s.Free(eni.Key{Network: "pods", Container: "lost", IfName: "eth0"}, l.now)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.request("", "", `{"cniVersion":"1.1.0","name":"pods","cni.dev/valid-attachments":[]}`, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.GC(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if links := nettest.Run(t, "ip", "-o", "link"); strings.Contains(links, hostDev("lost")) {
		t.Errorf("the leftover link is still there:\n%s", links)
	}
}

// waitForNoLink waits for the kernel to finish off a namespace, which it does in
// the background.
func (l *lab) waitForNoLink(dev string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	defer cancel()
	for {
		if _, err := os.Stat(filepath.Join("/proc/sys/net/ipv4/conf", dev)); os.IsNotExist(err) {
			return
		}
		select {
		case <-ctx.Done():
			l.t.Fatalf("link %s did not go with its namespace", dev)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

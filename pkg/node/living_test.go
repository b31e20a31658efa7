package node

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/google/go-cmp/cmp"
)

// withDelegated makes a node with a pod of another plugin that calls enipool as its IPAM:
// no link of ours tells that it lives.
func withDelegated(t *testing.T) (n Node, state *ipam.State) {
	t.Helper()
	n, state = newNode(t, 2)
	ns := nettest.NewNetns(t, "bridged")
	state.Settings.Routing = ipam.Rule
	state.Addresses[1].State = eni.Used
	state.Addresses[1].Owner = &eni.Owner{Key: eni.Key{Network: "pods", Container: "db", IfName: "eth0"}, Kind: eni.Delegated,
		Namespace: "default", Pod: "db", Netns: ns.Path}
	n.put(t, state)
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // later tests begin with a kernel without ours
		state.Addresses[1].State, state.Addresses[1].Owner = eni.Free, nil
		err := n.Cache.Replace(context.Background(), func(*ipam.State, error) (*ipam.State, error) { return state, nil })
		if err != nil {
			t.Error(err)
		}
		if _, _, err := n.Remove(context.Background(), "/none"); err != nil {
			t.Error(err)
		}
	})
	return n, state
}

func TestNothingIsRemovedWhereNobodyCanTellWhoLives(t *testing.T) {
	n, _ := withDelegated(t)
	sound, err := os.ReadFile(n.Cache.Path)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := nodecache.BootID()
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(old, with string) func() error {
		return func() error {
			damaged := strings.Replace(string(sound), old, with, 1)
			if damaged == string(sound) {
				t.Fatalf("the cache has no %q", old)
			}
			return os.WriteFile(n.Cache.Path, []byte(damaged), 0o600)
		}
	}
	was := kernel(t)
	for name, tt := range map[string]struct {
		damage func() error
		cause  error
		want   string
	}{
		"missing":              {func() error { return os.Remove(n.Cache.Path) }, nodecache.ErrMissing, "node cache is missing: " + n.Cache.Path},
		"its folder too":       {func() error { n.Cache.Path = t.TempDir() + "/none/node.cache"; return nil }, nodecache.ErrMissing, "; rules of enipool are there for 10.0.0.21: "},
		"damaged head":         {replaced("enipool-node-cache", "enipool-node-cashe"), nodecache.ErrDamaged, "start an agent, which rebuilds the node cache, end it and run this again, or drain the node and reboot it"},
		"cut":                  {func() error { return os.Truncate(n.Cache.Path, 1000) }, nodecache.ErrDamaged, "pods would be cut off"},
		"newer":                {replaced("min 1", "min 9"), nodecache.ErrVersion, "wants a reader of version 9"},
		"the pod's line":       {replaced("pods db eth0", "pods dc eth0"), nil, "10.0.0.21 of default/db"},
		"the line's address":   {replaced("10.0.0.21 ", "10.0.0.2x "), nil, "the node cache has damaged addresses (line "},
		"a free address's one": {replaced("10.0.0.11              ", "10.0.0.1               "), nil, "default/db"},
		"of another boot":      {replaced(boot, strings.Repeat("0", len(boot))), nil, "node cache"},
	} {
		t.Run(name, func(t *testing.T) {
			path := n.Cache.Path
			defer func() {
				n.Cache.Path = path
				if err := os.WriteFile(path, sound, 0o600); err != nil {
					t.Fatal(err)
				}
			}()
			if err := tt.damage(); err != nil {
				t.Fatal(err)
			}
			removed, _, err := n.Remove(t.Context(), "/none")
			var unknown *UnknownError
			var living *LivingError
			if len(removed) > 0 || !errors.As(err, &unknown) && !errors.As(err, &living) || tt.cause != nil && !errors.Is(err, tt.cause) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("removed %q, %v; want %q", removed, err, tt.want)
			}
			if diff := cmp.Diff(was, kernel(t)); diff != "" {
				t.Errorf("(-was +is):\n%s", diff)
			}
		})
	}
}

func TestWithoutANodeCacheThereIsNothingToRefuseWhereTheKernelHasNothing(t *testing.T) {
	n, state := newNode(t, 1)
	n.put(t, state)
	if _, _, err := n.Remove(t.Context(), "/none"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{n.Cache.Path, t.TempDir() + "/none/node.cache"} {
		_ = os.Remove(path)
		n.Cache.Path = path
		if removed, stays, err := n.Remove(t.Context(), "/none"); err != nil || len(removed)+len(stays) > 0 {
			t.Errorf("%s: removed %q, %q stay, %v", path, removed, stays, err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("it made a node cache")
		}
	}
}

// An ADD that waits gets the next address that is free, at any moment.
func TestNothingIsRemovedWhileAnADDWaits(t *testing.T) {
	n, state := newNode(t, 2)
	n.Now = nodecache.SinceBoot
	n.put(t, state)
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	until := nodecache.SinceBoot() + time.Hour
	place, err := n.Cache.Enqueue("", until)
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(want string) {
		t.Helper()
		var living *LivingError
		if removed, _, err := n.Remove(t.Context(), "/none"); !errors.As(err, &living) || !cmp.Equal(living.Pods, []string{want}) || len(removed) > 0 {
			t.Errorf("removed %q, %v", removed, err)
		}
	}
	refuses("one that waits for an address")
	waiting, err := n.Cache.Announce(eni.Owner{Key: eni.Key{Network: "pods", Container: "web", IfName: "eth0"}, Namespace: "default", Pod: "web"}, until)
	if err != nil {
		t.Fatal(err)
	}
	refuses("default/web (waits for an address)")
	place.Leave()
	refuses("default/web (waits for an address)") // it had no place in the queue
	waiting.Done()
	if removed, _, err := n.Remove(t.Context(), "/none"); err != nil || len(removed) == 0 {
		t.Errorf("nobody waits: removed %q, %v", removed, err)
	}
}

// What has no address can't be cut off: such an ADD says why it gets none.
func TestAfterTheRemovalNobodyGetsAnAddress(t *testing.T) {
	n, state := newNode(t, 2)
	n.put(t, state)
	if _, _, err := n.Remove(t.Context(), "/none"); err != nil {
		t.Fatal(err)
	}
	err := n.Cache.Update(t.Context(), func(s *ipam.State) error {
		_, err := s.AssignPod(eni.Owner{Key: eni.Key{Network: "pods", Container: "late", IfName: "eth0"}}, "", time.Hour)
		return err
	})
	if none := (*ipam.Exhausted)(nil); !errors.As(err, &none) || none.Total > 0 {
		t.Errorf("a late ADD: %v", err)
	}
	if why := n.Cache.Why(); why != "enipool was uninstalled from this node" {
		t.Errorf("it says %q", why)
	}
	left := &ipam.State{}
	if err := n.Cache.View(t.Context(), func(s *ipam.State) error { left = s.Clone(); return nil }); err != nil || !cmp.Equal(left.ENIs, state.ENIs) {
		t.Errorf("the ENIs are not there any more: %+v, %v", left.ENIs, err)
	}
}

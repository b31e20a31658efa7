package operated

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
)

func (b *bed) page() (status.Status, error) {
	return status.Beside(filepath.Join(b.dir, "node.cache")).Read()
}

// object returns the node's NodeNetwork.
func (b *bed) object() (n crd.NodeNetwork, err error) {
	return n, b.api.Get("/apis/enipool.io/v1alpha1/nodenetworks/n1", &n)
}

// cached returns the addresses of the node cache, and those that pods use by pod.
func (b *bed) cached() (all []netip.Addr, used map[string]netip.Addr, err error) {
	used = map[string]netip.Addr{}
	return all, used, nodecache.Cache{Path: filepath.Join(b.dir, "node.cache")}.View(b.Context(), func(s *ipam.State) error {
		for _, a := range s.Addresses {
			all = append(all, a.Addr)
			switch {
			case a.Lost:
				return fmt.Errorf("%s of pod %s is lost", a.Addr, a.Owner.Pod)
			case a.State == eni.Used:
				used[a.Owner.Pod] = a.Addr
			}
		}
		slices.SortFunc(all, netip.Addr.Compare)
		return nil
	})
}

// inAccount returns the addresses for pods that the account has for the node.
func (b *bed) inAccount() (all []netip.Addr) {
	b.vpc.Account.View(0, func(tx *sim.Tx) {
		for _, e := range tx.Interfaces() {
			all = append(all, e.V4...)
		}
	})
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// podsKeep checks that each pod has the address that it was given, in the account and in the node cache.
func (b *bed) podsKeep() {
	b.Helper()
	there := b.inAccount()
	_, used, err := b.cached()
	b.must(err)
	want := map[string]netip.Addr{}
	for name, p := range b.pods {
		if !p.addr.IsValid() {
			continue
		}
		want[name] = p.addr
		if !slices.Contains(there, p.addr) {
			b.Errorf("pod %s uses %s, which the account does not have for the node: %v", name, p.addr, there)
		}
	}
	if diff := cmp.Diff(want, used, cmp.Comparer(func(x, y netip.Addr) bool { return x == y })); diff != "" {
		b.Errorf("addresses of pods, -want +node cache:\n%s", diff)
	}
}

// complete waits until the node has what it asks for, and account, object and node cache have the same addresses: nothing is lost,
// and nothing is there twice.
func (b *bed) complete(what string) {
	b.Helper()
	b.api.Eventually(what, func() error {
		n, err := b.object()
		if err != nil {
			return err
		}
		var told []netip.Addr
		for _, e := range n.Status.ENIs {
			for _, text := range e.Addresses {
				told = append(told, netip.MustParseAddr(text))
			}
		}
		slices.SortFunc(told, netip.Addr.Compare)
		serves := slices.DeleteFunc(slices.Clone(told), func(a netip.Addr) bool {
			return slices.ContainsFunc(n.Status.Quarantined, func(q crd.Quarantined) bool { return q.Address == a.String() })
		})
		has, used, err := b.cached()
		there := b.inAccount()
		s, wrong := b.page()
		switch {
		case errors.Join(err, wrong) != nil:
			return errors.Join(err, wrong)
		case !meta.IsStatusConditionTrue(n.Status.Conditions, "Satisfied") || n.Status.ObservedGeneration != n.Generation || int(n.Spec.Slots) != s.Target || len(n.Status.Releasing) > 0:
			return fmt.Errorf("the node wants %d: %+v", s.Target, n)
		case !slices.Equal(told, there):
			return fmt.Errorf("the object has %v, the account %v", told, there)
		case !slices.Equal(serves, has):
			return fmt.Errorf("the object has %v but for those in quarantine, the node cache %v", serves, has)
		case len(used) != len(b.pods) || s.Addresses.Used != len(b.pods):
			return fmt.Errorf("%d pods use %v, the agent counts %+v", len(b.pods), used, s.Addresses)
		case len(s.Causes) > 0:
			return fmt.Errorf("causes: %+v", s.Causes)
		}
		return nil
	})
	b.podsKeep()
	b.must(b.vpc.Account.Check())
}

// shrinks waits until the account has fewer addresses than before.
func (b *bed) shrinks(before int) {
	b.Helper()
	b.api.Eventually("addresses that no pod needs go back", func() error {
		if now := len(b.inAccount()); now >= before {
			return fmt.Errorf("%d addresses, had %d", now, before)
		}
		return nil
	})
}

// says returns what tells whether a program has logged something.
func (b *bed) says(name, what string) func() error {
	return func() error {
		if text := b.said(name); !strings.Contains(text, what) {
			return errors.New("it has not said " + what)
		}
		return nil
	}
}

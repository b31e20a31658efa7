package explore

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// node is what outlives the agent: the node cache, the kernel's map of addresses, the
// agent's file, and the pods.
type node struct {
	cache  *ipam.State // nil before the agent has made it
	routed map[netip.Addr]bool
	saved  []byte
	pods   [2]pod
	serial int // of sandboxes
}

// pod is one that comes and goes. owner is nil while there is none, addr invalid while its
// ADD waits.
type pod struct {
	owner *eni.Owner
	since time.Duration
	addr  netip.Addr
	on    string // ID of the ENI that had the address when the pod got it
}

// podSteps are what pods may do next, for so many faults: where it comes in between what
// the agent does it is one. Two pods that are not there are the same.
func (w *world) podSteps(faults int) (list []option) {
	for i := range w.pods {
		if w.pods[i].owner != nil {
			list = append(list, option{name: "DEL of pod " + strconv.Itoa(i), faults: faults, steps: 1, do: func() { w.del(i) }})
		}
	}
	for i := range w.pods {
		if w.pods[i].owner == nil {
			return append(list, option{name: "ADD of pod " + strconv.Itoa(i), faults: faults, steps: 1, do: func() { w.add(i) }})
		}
	}
	return list
}

func (w *world) add(i int) {
	w.serial++
	id := strconv.Itoa(w.serial)
	w.pods[i] = pod{since: w.sinceBoot(), owner: &eni.Owner{Key: eni.Key{Network: "pods", Container: id, IfName: "eth0"}, Pod: "pod-" + id, Netns: "/run/netns/" + id}}
	w.serve()
	w.life.wake()
}

func (w *world) del(i int) {
	if key := w.pods[i].owner.Key; w.cache != nil {
		next := w.cache.Clone()
		next.Free(key, w.sinceBoot())
		w.cache = next
	}
	w.pods[i] = pod{}
	w.life.wake()
}

// serve gives addresses to the pods that wait.
func (w *world) serve() {
	for i := range w.pods {
		p := &w.pods[i]
		if p.owner == nil || p.addr.IsValid() || w.cache == nil {
			continue
		}
		next := w.cache.Clone()
		lease, err := next.AssignPod(*p.owner, "", w.sinceBoot())
		if err != nil {
			continue
		}
		w.cache, p.addr, p.on = next, lease.Addresses[0].Addr, lease.Interface.ID
		if !w.routed[p.addr] {
			w.fail("%s was handed out and the kernel does not route it", p.addr)
		}
	}
}

// effect is an effect on the node, after which the agent may be killed, or before which a
// pod may come or go.
func (w *world) effect(name string, do func() error) error {
	how := w.choose(name, append([]option{{name: "ok"}, {name: "ok, then killed", faults: 1}}, w.podSteps(1)...))
	if how.do != nil {
		how.do()
	}
	err := do()
	if how.name == "ok, then killed" {
		panic(killed{})
	}
	return err
}

func (w *world) View(_ context.Context, fn func(*ipam.State) error) error {
	if w.cache == nil {
		return nodecache.ErrMissing
	}
	return fn(w.cache)
}

func (w *world) Update(_ context.Context, fn func(*ipam.State) error) error {
	return w.effect("write the node cache", func() error {
		if w.cache == nil {
			return nodecache.ErrMissing
		}
		next := w.cache.Clone()
		if err := fn(next); err != nil {
			return err
		}
		w.put(next)
		return nil
	})
}

func (w *world) Replace(_ context.Context, fn func(*ipam.State, error) (*ipam.State, error)) error {
	return w.effect("replace the node cache", func() error {
		var old *ipam.State
		err := nodecache.ErrMissing
		if w.cache != nil {
			old, err = w.cache.Clone(), nil
		}
		next, err := fn(old, err)
		if err != nil {
			return err
		}
		w.put(next.Clone())
		return nil
	})
}

// put is a change of the node cache by the agent. It wakes the agent and those that wait.
func (w *world) put(next *ipam.State) {
	if err := next.Check(); err != nil {
		w.fail("the node cache: %v", err)
	}
	w.cache = next
	w.life.wake()
	w.serve()
}

// Grow and Sync are the kernel: both may end between the kernel and the node cache.
func (w *world) Grow(_ context.Context, next *ipam.State) ([]string, error) {
	want := maps.Clone(w.routed)
	for _, line := range next.Addresses {
		if line.State != eni.Releasing && line.State != eni.Held {
			want[line.Addr] = true
		}
	}
	return nil, w.route(want)
}

func (w *world) Sync(_ context.Context, leaving []string, _ *ipam.State) ([]string, error) {
	if w.cache == nil {
		return nil, nodecache.ErrMissing
	}
	want := map[netip.Addr]bool{}
	for _, line := range w.cache.Addresses {
		on, _ := w.cache.Interface(line.ENI)
		gone := slices.Contains(leaving, on.ID)
		if gone && line.State == eni.Used && !line.Lost {
			w.fail("the kernel forgets ENI %s, a pod uses its %s", on.ID, line.Addr)
		}
		if line.State != eni.Releasing && line.State != eni.Held && !gone {
			want[line.Addr] = true
		}
	}
	return nil, w.route(want)
}

func (w *world) route(want map[netip.Addr]bool) error {
	if maps.Equal(want, w.routed) {
		return nil
	}
	return w.effect("change the kernel", func() error { w.routed = want; return nil })
}

func (w *world) Links(context.Context) (map[string]eni.Interface, error) {
	links := map[string]eni.Interface{}
	for index, i := range w.attached() {
		links[i.MAC] = eni.Interface{Device: fmt.Sprintf("eth%d", index), MTU: 9001}
	}
	return links, nil
}

// attached returns the ENIs that the instance has, its primary one first.
func (w *world) attached() (list []driver.Interface) {
	for _, i := range w.now() {
		if i.Instance == instance && i.State == driver.Attached {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b driver.Interface) int {
		if a.Primary == b.Primary {
			return 0
		} else if a.Primary {
			return -1
		}
		return 1
	})
	return list
}

func (w *world) Occupancy(context.Context) (netconf.Occupancy, error) {
	o := netconf.Occupancy{At: w.sinceBoot(), Links: map[string]bool{}}
	for index := range w.attached() {
		o.Links[fmt.Sprintf("eth%d", index)] = true
	}
	for _, p := range w.pods {
		if p.addr.IsValid() {
			o.Pods = append(o.Pods, netconf.PodEnd{Dev: netconf.HostDevice(p.owner.Key), Owner: *p.owner, Routed: []netip.Addr{p.addr}})
		}
	}
	return o, nil
}

// Reclaim has nothing to do: every sandbox here ends with a DEL.
func (w *world) Reclaim(context.Context, func(eni.Owner) bool) ([]eni.Address, error) {
	return nil, nil
}

func (w *world) Load() ([]byte, error) { return w.saved, nil }

func (w *world) Save(text []byte) error {
	if string(text) == string(w.saved) {
		return nil
	}
	return w.effect("save the agent's memory", func() error { w.saved = slices.Clone(text); return nil })
}

func (w *world) wants(time.Duration) (list []nodecache.PendingADD, err error) {
	for _, p := range w.pods {
		if p.owner != nil && !p.addr.IsValid() {
			list = append(list, nodecache.PendingADD{Owner: *p.owner, Since: p.since})
		}
	}
	return list, nil
}

// noEvents are metrics that nobody reads.
type noEvents struct{}

func (noEvents) Call(string, string, time.Duration) {}
func (noEvents) Step(status.Step)                   {}
func (noEvents) Repaired(string, int)               {}
func (noEvents) Compared(string)                    {}
func (noEvents) Error(string)                       {}
func (noEvents) Tick(time.Duration)                 {}
func (noEvents) Observe(status.Status)              {}

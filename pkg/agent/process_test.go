package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

var errFull = errors.New("no space left on device")

// process is what one life of the agent sees of the node. Everything that has an
// effect goes through do, where it may be killed.
type process struct {
	n *testNode
	l *life
}

// do has an effect unless the process is dead, and may kill it before or after.
func (p process) do(effect func() error) error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.l.dead {
		return errKilled
	}
	p.n.w.traced(p.n.name, "has an effect", p.l.killAt)
	if p.l.after == "" {
		p.l.killAt--
	}
	if p.l.killAt == 0 {
		p.l.dead = true
		if !p.l.before {
			_ = effect()
		}
		return errKilled
	}
	return effect()
}

// returned tells that a request of the action has: the effects until the process is killed may
// be counted from here.
func (p process) returned(action string) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.l.after == action {
		p.l.after = ""
	}
}

// see is do for what only looks.
func (p process) see(look func() error) error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.l.dead {
		return errKilled
	}
	return look()
}

func (p process) View(_ context.Context, fn func(*ipam.State) error) error {
	return p.see(func() error {
		if p.n.cacheErr != nil {
			return p.n.cacheErr
		}
		return fn(p.n.cached.Clone())
	})
}

func (p process) Update(_ context.Context, fn func(*ipam.State) error) error {
	return p.do(func() error { return p.n.update(fn) })
}

func (n *testNode) update(fn func(*ipam.State) error) error {
	if n.cacheErr != nil {
		return n.cacheErr
	}
	next := n.cached.Clone()
	if err := fn(next); err != nil {
		return err
	}
	if len(next.Addresses) != len(n.cached.Addresses) {
		n.w.t.Error("an update changed the layout")
	}
	n.cached = next
	return n.cached.Check()
}

func (p process) Replace(_ context.Context, fn func(*ipam.State, error) (*ipam.State, error)) error {
	return p.do(func() error {
		var old *ipam.State
		if p.n.cacheErr == nil {
			old = p.n.cached.Clone()
		}
		next, err := fn(old, p.n.cacheErr)
		if err != nil {
			return err
		}
		if err := next.Check(); err != nil {
			return err
		}
		if len(next.Damaged) > 0 {
			return nodecache.ErrDamaged
		}
		for _, line := range next.Addresses {
			if line.State == eni.Free && !p.n.routed[line.Addr] {
				p.n.w.t.Errorf("%s: %s may be handed out and the kernel does not route it", p.n.name, line.Addr)
			}
		}
		p.n.cached, p.n.cacheErr = next.Clone(), nil
		return nil
	})
}

func (p process) Grow(_ context.Context, next *ipam.State) ([]string, error) {
	return nil, p.do(func() error {
		var errs []error
		broken := map[int]bool{}
		for _, nic := range next.ENIs {
			if broken[nic.Index] = p.n.broken[nic.Device]; broken[nic.Index] {
				errs = append(errs, &netconf.LinkError{Devs: []string{nic.Device}, Err: fmt.Errorf("set link %s up: it is broken", nic.Device)})
			}
		}
		for _, line := range next.Addresses {
			if broken[line.ENI] {
				continue
			}
			if line.State != eni.Releasing && line.State != eni.Held {
				p.n.routed[line.Addr] = true
			} else {
				delete(p.n.routed, line.Addr)
			}
		}
		return errors.Join(errs...)
	})
}

// Changer is who changes nftables on the node.
func (p process) Changer(time.Duration) (string, bool) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return p.n.changer, strings.Contains(p.n.changer, "started by")
}

func (p process) Sync(_ context.Context, leaving []string, _ *ipam.State) (lines []string, err error) {
	err = p.do(func() error {
		if p.n.cacheErr != nil {
			return p.n.cacheErr
		}
		p.n.syncs++
		if p.n.syncErr != nil && !netconf.OnlyLimits(p.n.syncErr) {
			return p.n.syncErr
		}
		want, id := map[netip.Addr]bool{}, ids(p.n.cached)
		for _, line := range p.n.cached.Addresses {
			if line.State == eni.Used && slices.Contains(leaving, id[line.ENI]) && !line.Lost && !p.n.w.taken[line.Addr] {
				p.n.w.t.Errorf("%s: the kernel forgets ENI %s, a pod uses its %s", p.n.name, id[line.ENI], line.Addr)
			}
			if line.State != eni.Releasing && line.State != eni.Held && !slices.Contains(leaving, id[line.ENI]) {
				want[line.Addr] = true
			}
		}
		var errs []error
		for _, nic := range p.n.cached.ENIs {
			if p.n.broken[nic.Device] && !slices.Contains(leaving, nic.ID) {
				errs = append(errs, &netconf.LinkError{Devs: []string{nic.Device}, Err: fmt.Errorf("set link %s up: it is broken", nic.Device)})
				for _, line := range p.n.cached.Addresses {
					if line.ENI == nic.Index && !p.n.routed[line.Addr] {
						delete(want, line.Addr)
					}
				}
			}
		}
		if !maps.Equal(want, p.n.routed) {
			lines = append(lines, "map")
		}
		lines = append(lines, p.n.undone...)
		p.n.routed = want
		return errors.Join(append(errs, p.n.syncErr)...)
	})
	return lines, err
}

func (p process) Hears(context.Context) bool { return p.n.hears }

func (p process) Blocked(context.Context) ([]string, error) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return slices.Clone(p.n.blocked), nil
}

func (p process) Misrouted(context.Context) ([]string, error) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return slices.Clone(p.n.misrouted), nil
}

func (p process) PortConflicts(context.Context) ([]string, error) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return slices.Clone(p.n.conflicts), nil
}

func (p process) Links(context.Context) (map[string]eni.Interface, error) {
	links := map[string]eni.Interface{}
	err := p.see(func() error {
		p.n.linkLooks++
		attached := p.n.w.account.Snapshot().Nodes[p.n.name]
		p.n.nameLinks(attached)
		for _, nic := range attached {
			if nic.Index >= 0 && !p.n.hidden[nic.MAC] {
				links[cmp.Or(p.n.remade[nic.MAC], nic.MAC)] = eni.Interface{Device: p.n.devices[nic.MAC], MTU: 9001}
			}
		}
		return nil
	})
	return links, err
}

// nameLinks names the links as the kernel does, once: by the ENI's index if no other link has
// that name. Where the cloud has no indexes that of an ENI may change.
func (n *testNode) nameLinks(attached []cloud.Interface) {
	named, before := map[string]bool{}, n.devices
	n.devices = map[string]string{}
	for _, nic := range attached {
		if device, has := before[nic.MAC]; has && nic.Index >= 0 {
			n.devices[nic.MAC], named[device] = device, true
		}
	}
	for _, nic := range attached {
		if nic.Index < 0 || n.devices[nic.MAC] != "" {
			continue
		}
		device := fmt.Sprintf("eth%d", nic.Index)
		for k := 1; named[device]; k++ {
			device = fmt.Sprintf("eth%d", k)
		}
		n.devices[nic.MAC], named[device] = device, true
	}
}

func (p process) Occupancy(context.Context) (netconf.Occupancy, error) {
	o := netconf.Occupancy{At: p.n.now(), Links: map[string]bool{}}
	links, err := p.Links(context.Background())
	if err != nil {
		return o, err
	}
	for _, link := range links {
		o.Links[link.Device] = true
	}
	err = p.see(func() error {
		for _, pod := range p.n.pods {
			o.Pods = append(o.Pods, netconf.PodEnd{Dev: netconf.HostDevice(pod.owner.Key), Owner: pod.owner, Routed: pod.addrs})
		}
		for addr, dev := range p.n.foreign {
			o.Routes = append(o.Routes, netconf.HostRoute{Dst: addr, Dev: dev, Table: netconf.MainTable})
		}
		return nil
	})
	return o, err
}

func (p process) Reclaim(_ context.Context, which func(eni.Owner) bool) (released []eni.Address, err error) {
	picked := map[eni.Owner]bool{}
	err = p.see(func() error {
		if p.n.cacheErr != nil {
			return p.n.cacheErr
		}
		for _, line := range p.n.cached.Used() {
			if pod := p.n.pods[line.Owner.Key]; (pod == nil || pod.dead) && which(*line.Owner) {
				picked[*line.Owner] = true
			}
		}
		return nil
	})
	if err != nil || len(picked) == 0 {
		return nil, err
	}
	err = p.do(func() error {
		return p.n.update(func(s *ipam.State) error {
			released = s.FreeIf(func(line eni.Address) bool {
				pod := p.n.pods[line.Owner.Key]
				return picked[*line.Owner] && (pod == nil || pod.dead)
			}, p.n.w.now())
			for _, line := range released {
				delete(p.n.pods, line.Owner.Key)
			}
			return nil
		})
	})
	return released, err
}

func (p process) Load() (text []byte, err error) {
	err = p.see(func() error { text = p.n.memory; return nil })
	return text, err
}

func (p process) Save(text []byte) error {
	return p.do(func() error {
		if p.n.full {
			return errFull
		}
		p.n.memory = slices.Clone(text)
		p.n.saves++
		return nil
	})
}

func (p process) wants(time.Duration) (list []nodecache.PendingADD, err error) {
	err = p.see(func() error {
		for k, w := range p.n.waiting {
			if w.Until > 0 && p.n.w.now() > w.Until {
				delete(p.n.waiting, k) // its runtime did not try again
				continue
			}
			list = append(list, w)
		}
		return nil
	})
	return list, err
}

func (p process) publish(s status.Status, why string) error {
	return p.see(func() error { p.n.told, p.n.why = s, why; return nil })
}

// status is what the agent says.
func (n *testNode) status() status.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told
}

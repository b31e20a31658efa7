package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/conf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"golang.org/x/sync/errgroup"
)

// Ports of the demonstration: what pods listen on, and what a node maps to its
// last pod.
const (
	podPort  = 8080
	hostPort = 30080
)

// pod is a sandbox with a server in it.
type pod struct {
	name   string
	on     *machine
	ns     isolate.Namespace
	eni    int
	addr   netip.Addr
	mapped bool // the node's hostPort leads here
	limits bool // the bandwidth plugin shapes it
	server net.Listener
}

// conflist is the one from conf/ with this node's paths.
func (m *machine) conflist() (*libcni.NetworkConfigList, error) {
	text, err := conf.Files.ReadFile("10-enipool.conflist")
	if err != nil {
		return nil, err
	}
	here := strings.NewReplacer("/run/enipool/node.cache", m.cache.Path, "/var/log/enipool.log", m.log())
	return libcni.ConfListFromBytes([]byte(here.Replace(string(text))))
}

func (m *machine) log() string { return "/run/enipool-" + m.name + ".log" }

// newPods names the pods of a node; the last one gets a hostPort, the one before
// it a bandwidth limit.
func newPods(m *machine) []*pod {
	var pods []*pod
	for i := range podsPerNode {
		name := fmt.Sprintf("%s-web-%02d", m.name, i)
		pods = append(pods, &pod{name: name, on: m, ns: isolate.Namespace{Name: "demo-" + name},
			mapped: i == podsPerNode-1, limits: i == podsPerNode-2})
	}
	return pods
}

func (p *pod) runtimeConf() *libcni.RuntimeConf {
	rt := &libcni.RuntimeConf{ContainerID: p.name, NetNS: p.ns.Path(), IfName: "eth0", CapabilityArgs: map[string]any{},
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", p.name}}}
	if p.mapped {
		rt.CapabilityArgs["portMappings"] = []map[string]any{{"hostPort": hostPort, "containerPort": podPort, "protocol": "tcp"}}
	}
	if p.limits {
		rt.CapabilityArgs["bandwidth"] = map[string]any{"ingressRate": 1e8, "ingressBurst": 1e7, "egressRate": 1e8, "egressBurst": 1e7}
	}
	return rt
}

// attach does for the pod what a container runtime does: a namespace, an ADD of
// the whole chain on the pod's node; then it starts the pod's server.
func (p *pod) attach(ctx context.Context, cni *libcni.CNIConfig, list *libcni.NetworkConfigList) error {
	if err := errors.Join(p.ns.Create(), p.ns.Do(isolate.LoopbackUp)); err != nil {
		return err
	}
	var res *current.Result
	err := p.on.ns.Do(func() error {
		r, err := cni.AddNetworkList(ctx, list, p.runtimeConf())
		if err != nil {
			return err
		}
		res, err = current.NewResultFromResult(r)
		return err
	})
	if err != nil {
		return fmt.Errorf("add %s: %w", p.name, err)
	}
	p.addr, _ = netip.AddrFromSlice(res.IPs[0].Address.IP.To4())
	for _, nic := range p.on.inventory().Addresses {
		if nic.Addr == p.addr {
			p.eni = nic.ENI
		}
	}
	return p.ns.Do(func() error {
		p.server, err = serve(podPort)
		return err
	})
}

// detach is what a runtime does at the pod's end.
func (p *pod) detach(ctx context.Context, cni *libcni.CNIConfig, list *libcni.NetworkConfigList) error {
	if p.server != nil {
		p.server.Close()
	}
	err := p.on.ns.Do(func() error { return cni.DelNetworkList(ctx, list, p.runtimeConf()) })
	if err != nil {
		err = fmt.Errorf("del %s: %w", p.name, err)
	}
	return errors.Join(err, p.ns.Remove())
}

// serve answers every connection with the address it comes from.
func serve(port int) (net.Listener, error) {
	l, err := net.Listen("tcp4", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
			_, _ = io.WriteString(c, from.String())
			c.Close()
		}
	}()
	return l, nil
}

// probeTimeout is how long a probe may take before the path counts as broken.
const probeTimeout = 2 * time.Second

// probe connects from ns to the server at to, and returns how long it took and
// what source address the server saw.
func probe(ns isolate.Namespace, to netip.AddrPort) (took time.Duration, seen string, err error) {
	err = ns.Do(func() error {
		start := time.Now()
		c, err := net.DialTimeout("tcp4", to.String(), probeTimeout)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(start.Add(probeTimeout)); err != nil {
			return err
		}
		text, err := io.ReadAll(c)
		took, seen = time.Since(start), string(text)
		return err
	})
	return took, seen, err
}

// each runs do for all items, at most width at once, and returns the first error;
// after one it starts no more.
func each[T any](ctx context.Context, items []T, width int, do func(T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for _, item := range items {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(item)
		})
	}
	return group.Wait()
}

// eniID names the ENI of a pod.
func (p *pod) eniID() string { return eniID(p.on, p.eni) }

func eniID(m *machine, index int) string {
	for _, nic := range m.enis {
		if nic.Index == index {
			return nic.ID
		}
	}
	return eni.Interface{}.ID
}

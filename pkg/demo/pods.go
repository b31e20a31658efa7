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
	"github.com/enipool/enipool/pkg/isolate"
	"golang.org/x/sync/errgroup"
)

// Ports of the demonstration: what pods listen on, and what a node maps to one of
// its pods.
const (
	podPort  = 8080
	hostPort = 30080
)

// pod is a sandbox with a server in it.
type pod struct {
	name   string
	on     *labNode
	ns     isolate.Namespace
	addr   netip.Addr
	index  int  // of its ENI
	mapped bool // the node's hostPort leads here
	limits bool // on its bandwidth
	server net.Listener
}

// runtime is what a node's container runtime has: the plugins and the conflist.
type runtime struct {
	cni   *libcni.CNIConfig
	lists map[*labNode]*libcni.NetworkConfigList
}

// newRuntime takes the conflist from conf/ with the nodes' paths, and a longer waitForAddress
// than the file's: without a kubelet nobody tries a second time.
func newRuntime(plugins []string, nodes []*labNode) (*runtime, error) {
	text, err := conf.Files.ReadFile("10-enipool.conflist")
	if err != nil {
		return nil, err
	}
	r := &runtime{libcni.NewCNIConfigWithCacheDir(plugins, "/run/demo/cni", nil), map[*labNode]*libcni.NetworkConfigList{}}
	for _, n := range nodes {
		here := strings.NewReplacer("/run/enipool/node.cache", n.cache.Path, "/var/log/enipool.log", "/run/demo/"+n.name+"/plugin.log",
			`"waitForAddress": "5s"`, `"waitForAddress": "30s"`)
		if r.lists[n], err = libcni.ConfListFromBytes([]byte(here.Replace(string(text)))); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// newPod makes the sandbox of a pod.
func newPod(n *labNode, number int) (*pod, error) {
	name := fmt.Sprintf("%s-web-%02d", n.name, number)
	p := &pod{name: name, on: n, ns: isolate.Namespace{Name: "demo-" + name}}
	return p, p.ns.Create()
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

// attach does for the pod what a container runtime does, an ADD of the whole chain
// on the pod's node; then it starts the pod's server.
func (r *runtime) attach(ctx context.Context, p *pod) error {
	var res *current.Result
	err := p.on.ns.Do(func() error {
		out, err := r.cni.AddNetworkList(ctx, r.lists[p.on], p.runtimeConf())
		if err != nil {
			return err
		}
		res, err = current.NewResultFromResult(out)
		return err
	})
	if err != nil {
		return fmt.Errorf("add %s: %w", p.name, err)
	}
	p.addr, _ = netip.AddrFromSlice(res.IPs[0].Address.IP.To4())
	state, err := p.on.nodeState(ctx)
	if err != nil {
		return err
	}
	// The result of an ADD does not tell the ENI, the node cache does.
	for _, a := range state.Addresses {
		if a.Addr == p.addr {
			p.index = a.ENI
		}
	}
	return p.ns.Do(func() error {
		p.server, err = serve(podPort)
		return err
	})
}

// detach is what a runtime does at the pod's end.
func (r *runtime) detach(ctx context.Context, p *pod) error {
	if p.server != nil {
		p.server.Close()
	}
	err := p.on.ns.Do(func() error { return r.cni.DelNetworkList(ctx, r.lists[p.on], p.runtimeConf()) })
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

// runEach runs do for all items, at most width at once, and returns the first error;
// after one it starts no more.
func runEach[T any](ctx context.Context, items []T, width int, do func(T) error) error {
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

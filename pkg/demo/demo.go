// Package demo shows the plugin at work on a simulated VPC: pods on two nodes get
// addresses of several ENIs, reach each other, the nodes and an internet, and
// leave nothing behind. It runs in the network namespace it is started in, which
// must be one that nobody needs.
package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Options of a demonstration.
type Options struct {
	Plugins []string // folders with enipool, portmap and bandwidth
	Keep    bool     // leave it up until ctx ends
	Out     *os.File
}

// demo is one run.
type demo struct {
	Options
	vpc      *sim.Network
	machines []*machine
	pods     []*pod
	lists    map[*machine]*libcni.NetworkConfigList
	cni      *libcni.CNIConfig
}

// Run is the whole demonstration. It removes all it made, also when it fails or
// ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	for _, name := range []string{"enipool", "portmap", "bandwidth"} {
		if !slices.ContainsFunc(o.Plugins, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }) {
			return fmt.Errorf("plugin %s is not in %v: `make build tools` builds it; --plugins names the folders", name, o.Plugins)
		}
	}
	d := &demo{Options: o, lists: map[*machine]*libcni.NetworkConfigList{},
		cni: libcni.NewCNIConfigWithCacheDir(o.Plugins, "/run/demo-cni", nil)}
	if d.vpc, d.machines, err = buildVPC(); err != nil {
		return err
	}
	defer func() {
		// The namespaces go with us; what is removed by hand is what is shown.
		err = errors.Join(err, d.vpc.Close())
	}()
	for _, step := range []func(context.Context) error{d.load, d.attach, d.showPods, d.reach, d.hold} {
		if err := step(ctx); err != nil {
			return errors.Join(err, d.detach(context.WithoutCancel(ctx)))
		}
	}
	if err := d.detach(ctx); err != nil {
		return err
	}
	return d.nothingLeft(ctx)
}

func (d *demo) say(format string, a ...any) { fmt.Fprintf(d.Out, format+"\n", a...) }

// title sets a step off from the one before.
func (d *demo) title(format string, a ...any) { d.say("\n== "+format, a...) }

// bar is a progress bar on a terminal, and nothing elsewhere.
func (d *demo) bar(count int, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions(count, progressbar.OptionSetDescription(what), progressbar.OptionSetWriter(d.Out),
		progressbar.OptionSetVisibility(term.IsTerminal(int(d.Out.Fd()))), progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
}

func (d *demo) load(ctx context.Context) error {
	d.title("A VPC 10.0.0.0/16 on this machine: router, internet %s, %d nodes with %d ENIs of %d addresses", internet, nodes, enisPerNode, perENI)
	for _, m := range d.machines {
		if _, err := m.load(ctx); err != nil {
			return err
		}
		s, err := m.book(ctx)
		if err != nil {
			return err
		}
		d.say("node %s: pool loaded, %d addresses, routing %s, firewall %s", m.name, len(s.Addresses), s.Settings.Routing, s.Settings.Firewall)
		if d.lists[m], err = m.conflist(); err != nil {
			return err
		}
		d.pods = append(d.pods, newPods(m)...)
	}
	return nil
}

// workers is how many runtimes' calls go on at once.
const workers = 4

func (d *demo) attach(ctx context.Context) error {
	d.title("%d pods through libcni: enipool, then portmap and bandwidth, conflist from conf/", len(d.pods))
	bar, start := d.bar(len(d.pods), "attaching"), time.Now()
	err := each(ctx, d.pods, workers, func(p *pod) error {
		if err := p.attach(ctx, d.cni, d.lists[p.on]); err != nil {
			return err
		}
		return errors.Join(bar.Add(1), p.on.orderHeld(ctx))
	})
	if err != nil {
		return err
	}
	d.say("%d pods attached in %s, %d at a time; after each one the ENI order held:", len(d.pods), time.Since(start).Round(time.Millisecond), workers)
	d.say("no address of a later ENI was given while an earlier one had a free one.")
	return nil
}

func (d *demo) showPods(ctx context.Context) error {
	d.title("Pods")
	slices.SortFunc(d.pods, func(a, b *pod) int { return strings.Compare(a.name, b.name) })
	t := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POD\tNODE\tENI\tADDRESS\tBESIDES")
	for _, p := range d.pods {
		besides := ""
		if p.mapped {
			besides = fmt.Sprintf("hostPort %d -> %d", hostPort, podPort)
		}
		if p.limits {
			besides = "100 Mbit/s"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.name, p.on.name, p.eniID(), p.addr, besides)
	}
	t.Flush()
	d.title("ENIs, filled in order")
	fmt.Fprintln(t, "NODE\tENI\tDEVICE\tUSED\tFREE")
	for _, m := range d.machines {
		used := map[int]int{}
		s, err := m.book(ctx)
		if err != nil {
			return err
		}
		for _, a := range s.Used() {
			used[a.ENI]++
		}
		for _, nic := range m.enis {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\n", m.name, nic.ID, nic.Device, used[nic.Index], perENI-used[nic.Index])
		}
	}
	return t.Flush()
}

// reach starts servers on the nodes and in the internet and probes everything
// from everywhere.
func (d *demo) reach(ctx context.Context) error {
	d.title("Who reaches whom: TCP from every source to every target, median time to connect and be answered")
	servers := []func(func() error) error{d.vpc.Internet().Do}
	for _, m := range d.machines {
		servers = append(servers, m.ns.Do)
	}
	for _, in := range servers {
		var l net.Listener
		if err := in(func() (err error) { l, err = serve(podPort); return err }); err != nil {
			return err
		}
		defer l.Close()
	}
	list := places(d.vpc, d.machines, d.pods)
	bar := d.bar(len(list)*len(list), "probing")
	cells, err := matrix(ctx, list, func() { _ = bar.Add(1) })
	if err != nil {
		return err
	}
	tried, failed, first := printMatrix(d.Out, list, cells)
	if failed > 0 {
		return fmt.Errorf("%d of %d probes failed, the first: %w", failed, tried, first)
	}
	d.say("%d of %d probes answered. A hostPort is tried on the first and on the second ENI's address.", tried, tried)
	return d.sources(list, cells)
}

// sources tells what source addresses were seen: pods' own inside the VPC, the
// nodes' beyond it.
func (d *demo) sources(list []place, cells [][]cell) error {
	out := map[string]bool{}
	for i, from := range list {
		for k, to := range list {
			if strings.HasPrefix(from.label, "eni-") && to.label == "internet" {
				maps.Copy(out, cells[i][k].seen)
			}
			if strings.HasPrefix(from.label, "eni-") && strings.HasPrefix(to.label, "eni-") && i != k && len(cells[i][k].seen) != len(from.from) {
				return fmt.Errorf("pods of %s saw %d source addresses of the %d pods of %s: somebody translates them", to.label, len(cells[i][k].seen), len(from.from), from.label)
			}
		}
	}
	seen := slices.Sorted(maps.Keys(out))
	var nodes []string
	for _, m := range d.machines {
		nodes = append(nodes, m.enis[0].V4.Primary.Addr().String())
	}
	if !slices.Equal(seen, nodes) {
		return fmt.Errorf("the internet saw pods as %v, want the nodes' addresses %v", seen, nodes)
	}
	d.say("Pods see each other's own addresses; the internet sees them as %s, their nodes.", strings.Join(seen, " and "))
	return nil
}

func (d *demo) detach(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	d.title("All pods deleted")
	bar, start := d.bar(len(d.pods), "deleting"), time.Now()
	err := each(ctx, d.pods, workers, func(p *pod) error {
		return errors.Join(p.detach(ctx, d.cni, d.lists[p.on]), bar.Add(1))
	})
	if err == nil {
		d.say("%d pods deleted in %s", len(d.pods), time.Since(start).Round(time.Millisecond))
	}
	return err
}

// nothingLeft fails if anything of a pod is still on a node.
func (d *demo) nothingLeft(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, m := range d.machines {
		s, err := m.book(ctx)
		if err != nil {
			return err
		}
		if used := s.Used(); len(used) > 0 {
			return fmt.Errorf("node %s: %d addresses are still used", m.name, len(used))
		}
		var wrong []string
		var links []host.PodLink
		err = m.ns.Do(func() error {
			h, err := host.New()
			if err != nil {
				return err
			}
			defer h.Close()
			if links, err = h.PodLinks(); err != nil {
				return err
			}
			wrong, err = m.node().Check(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if len(links)+len(wrong) > 0 {
			return fmt.Errorf("node %s: left behind: %v %v", m.name, links, wrong)
		}
		d.say("node %s: nothing left behind: no link, route, rule or used address; %d cooling; the kernel is as loaded", m.name, cooling(s))
	}
	return nil
}

func cooling(s ipam.State) int { return s.Count(0, nil).Cooling }

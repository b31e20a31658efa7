// Package demo shows the agent and the plugin at work on a simulated VPC: on two
// nodes pods come in a burst, the agents make ENIs for them, one by the scaling
// equation and one as its forerunner did; pods reach each other, the nodes and an
// internet; an agent is killed; pods leave, the pools shrink, and nothing is left
// behind. It runs in the network namespace it is started in, which must be one
// that nobody needs.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/test/lab"
)

// Options of a demonstration.
type Options struct {
	From []string // folders with enipool and enipool-agent
	Keep bool     // leave it up until ctx ends

	// Pages listen outside of the sandbox, one for each node, to show the agents' pages there while it is kept up. None may be.
	Pages []net.Listener
	Out   *os.File
}

// demo is one run.
type demo struct {
	*screen
	keep    bool
	program string          // enipool-agent
	fail    func(err error) // ends the run
	ended   chan ending     // for restartEnded: agents that ended by themselves
	held    atomic.Bool     // restartEnded runs
	nodes   []*labNode
	vpc     *lab.VPC
	cloud   *cloudAPI
	runtime *runtime
	pods    []*pod
	pages   []net.Listener
}

// Run is the whole demonstration. It removes all it made and ends the processes it
// started, also when it fails or ctx ends.
func Run(ctx context.Context, o Options) error {
	programs, err := findPrograms(o.From, "enipool", "enipool-agent")
	if err != nil {
		return err
	}
	run, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &demo{screen: &screen{out: o.Out}, keep: o.Keep, program: programs[1], fail: fail,
		ended: make(chan ending), nodes: newNodes(), pages: o.Pages}
	if d.runtime, err = newRuntime(o.From, d.nodes); err != nil {
		return err
	}
	if d.vpc, err = buildVPC(d.nodes); err != nil {
		return err
	}
	switch err = d.play(run); {
	case err == nil:
		err = d.finish(ctx)
	case run.Err() != nil:
		err = context.Cause(run) // err only follows from it
	}
	if err != nil && !errors.Is(err, context.Cause(ctx)) {
		d.showLogs()
	}
	return errors.Join(err, d.removeAll())
}

// findPrograms returns where the programs are.
func findPrograms(folders []string, names ...string) (paths []string, err error) {
	for _, name := range names {
		at := slices.IndexFunc(folders, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil })
		if at < 0 {
			return nil, fmt.Errorf("program %s is not in %v: `make build tools` builds it; --from names the folders", name, folders)
		}
		paths = append(paths, filepath.Join(folders[at], name))
	}
	return paths, nil
}

// play runs all steps but the last, finish, which with --keep comes when ctx ends.
func (d *demo) play(ctx context.Context) error {
	last := d.drain
	if d.keep {
		last = d.keepUp
	}
	for _, step := range []func(context.Context) error{d.start, d.onePodEach, d.burst, d.showENIs, d.reach, d.crash, last} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startAgent starts the node's agent.
func (d *demo) startAgent(n *labNode) error { return n.startAgent(d.program, d.heard, d.agentGone) }

// ending is an agent that ended by itself, and how.
type ending struct {
	on  *labNode
	err error
}

// agentGone ends the run. While it is kept up the agent is started again instead: see
// restartEnded.
func (d *demo) agentGone(n *labNode, err error) {
	if d.held.Load() {
		d.ended <- ending{n, err}
		return
	}
	d.fail(err)
}

// showLogs shows what the agents said last, for somebody who has to find out why the
// demonstration failed.
func (d *demo) showLogs() {
	for _, n := range d.nodes {
		if text := n.logTail(); text != "" {
			d.say("\nThe end of the log of %s's agent:\n%s", n.name, text)
		}
	}
}

// clearTime is how long the removal may take, for the case that a plugin hangs.
const clearTime = 30 * time.Second

// removeAll ends and removes whatever is still there. After a whole run that is the
// VPC alone.
func (d *demo) removeAll() error {
	ctx, stop := context.WithTimeout(context.Background(), clearTime)
	defer stop()
	if len(d.pods) > 0 {
		d.title("Everything is removed")
	}
	return errors.Join(d.stopAgents(), d.detach(ctx, d.pods), d.vpc.Close())
}

// stopAgents ends the agents that run, all at once.
func (d *demo) stopAgents() error {
	return runEach(context.Background(), d.nodes, len(d.nodes), func(n *labNode) error {
		if n.agent == nil {
			return nil
		}
		err := n.agent.stop()
		n.agent = nil
		return err
	})
}

// workers is how many runtimes' calls go on at once where there is no hurry.
const workers = 4

// attach starts pods one after the other.
func (d *demo) attach(ctx context.Context, pods ...*pod) error {
	for _, p := range pods {
		if err := d.runtime.attach(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// newPods makes the sandboxes of count more pods on the node.
func (d *demo) newPods(n *labNode, count int) ([]*pod, error) {
	first := len(d.podsOf(n))
	for i := range count {
		p, err := newPod(n, first+i)
		d.pods = append(d.pods, p) // to be removed, whatever there is of it
		if err != nil {
			return nil, err
		}
	}
	return d.podsOf(n)[first:], nil
}

func (d *demo) podsOf(n *labNode) []*pod {
	var list []*pod
	for _, p := range d.pods {
		if p.on == n {
			list = append(list, p)
		}
	}
	return list
}

// detach deletes pods.
func (d *demo) detach(ctx context.Context, pods []*pod) error {
	if len(pods) == 0 {
		return nil
	}
	bar, start := d.progress(len(pods), "deleting"), time.Now()
	pods = slices.Clone(pods)
	err := runEach(ctx, pods, workers, func(p *pod) error {
		return errors.Join(d.runtime.detach(ctx, p), bar.Add(1))
	})
	d.pods = slices.DeleteFunc(d.pods, func(p *pod) bool { return slices.Contains(pods, p) })
	if err == nil {
		d.say("%d pods deleted in %.1f s", len(pods), time.Since(start).Seconds())
	}
	return err
}

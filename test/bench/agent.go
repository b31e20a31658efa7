package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The agent's node: the sizes of the targets. 250 pods need 272 addresses by the
// equation, with batches of 16 and half a batch free.
const (
	slotsPerENI = 50
	enisPerNode = 8
	agentPods   = 250
	agentPool   = 272
)

// podGroups is how the pods come: the groups one after the other, the pods of a
// group at once. It is the timeline of sources/cns-watch-pods.md, and on.
var podGroups = []int{1, 35, agentPods - 36}

// How long the cloud takes for a call, and for making an ENI.
const (
	cloudLatency  = 300 * time.Millisecond
	createLatency = 2 * time.Second
)

const agentNote = `
## How the agent is measured

The agent's own process, with the default configuration but for maxPods, in a node's network namespace on the simulated
VPC: ENIs are real links of 50 addresses each, and the cloud answers on a unix socket after 300 ms, after 2 s where it
makes an ENI. Pods are attached by the plugin, each into a namespace of its own: first 1, then 35 at once, then 214 at
once, with waitForAddress of 90 s; an ADD that fails is repeated. Cloud calls are those that change something; the time
ends when the last pod is up. Equation and reactive are the two values of the key pool.strategy.

CPU time is the kernel's count for all threads of the process, to the nanosecond. A wake is a write to the node cache
that changes nothing: besides the tick the process pays for the file watch, for timers and for caches gone cold. What
the tick itself takes is a Go benchmark of the same loop over a real node cache. A comparison with cloud and kernel,
one a minute by default, is a describe, a check of all kernel state and of all sandboxes, and the ticks for these. The
memory when idle is that after an hour's worth of them; the most is since the start of the process.

The agent in a cluster is the same process with a kubeconfig, and a real API server beside it that knows its Node, 250 pods
of the node and 250 of another one, each some kilobytes large. Its memory when idle is the median of half a minute, after an
hour's worth of comparisons. Most of it are pages of the program's file, which the kernel takes back when it needs them. The
agent that keeps the fast path has the key fastPath set to auto and is otherwise the same; where no bpf file system can be mounted it is left out.
What the idle agent does is counted for four minutes when nothing has happened for as long, with the default configuration of a
real cloud, where describes are 5 minutes apart at least; it compares everything once in that time.

Where 40 pods are bound at once what the API server says reaches the node when the last of them is bound, and time counts
from then until the node cache has 48 addresses, which the equation wants; the plugin is called for the first pod at once, and for
each after as much time as is said. An ADD that fails is not repeated. The writes of an hour and the describes of 5,000 nodes
are counted in virtual time, with the agent's own code.
`

// strategies are what the loop is compared with itself by.
var strategies = []string{"equation", "reactive"}

// buildAgent compiles what only the agent's row needs.
func buildAgent(dir string) error {
	err := goTool("build", "-trimpath", "-tags=grpcnotrace", "-ldflags", "-s -w", "-o", dir+"/", "./plugins/enipool-agent")
	return errors.Join(err, goTool("test", "-c", "-o", filepath.Join(dir, agentTest), "./test/bench"),
		goTool("test", "-c", "-o", filepath.Join(dir, kubeTest), "./pkg/kube"))
}

// agentRow measures the agent: what it asks of the cloud when pods come, then what
// it takes when none do.
func (b *bench) agentRow() (err error) {
	c, err := b.newCloud()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	g := newGrowthOfPool()
	rounds := b.pick(3, 1)
	for n := range rounds {
		for i, strategy := range strategies {
			b.round("pods on a node with the agent, "+strategy, n+1, rounds)
			if err := b.agentRound(c, g, i, n == rounds-1 && i == 0); err != nil {
				return fmt.Errorf("%s: %w", strategy, err)
			}
		}
	}
	g.report(b)
	return errors.Join(b.idleTickRow(), b.agentSize())
}

// agentRound lets all pods come to a fresh node, and in the end measures its agent
// at rest.
func (b *bench) agentRound(c *simulated, g *growthOfPool, strategy int, rest bool) (err error) {
	n, err := c.newAgentNode(b, strategies[strategy])
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, n.log())
		}
		err = errors.Join(err, n.stop())
	}()
	if err := n.start(); err != nil {
		return err
	}
	if err := g.run(strategy, n); err != nil || !rest {
		return err
	}
	return b.idleRow(n)
}

// growthOfPool is what the pool's growth took: a measure a group of pods that came,
// but for the first, and strategy.
type growthOfPool struct {
	calls, seconds [][]measure
	failed         []measure // by strategy
}

func newGrowthOfPool() *growthOfPool {
	g := &growthOfPool{}
	for _, strategy := range strategies {
		command := fmt.Sprintf("enipool-agent --config agent.yaml (pool.strategy: %s); enipool < enipool.json, %%d at once", strategy)
		var calls, seconds []measure
		pods := podGroups[0]
		for _, n := range podGroups[1:] {
			what := fmt.Sprintf("from %d to %d pods, %s", pods, pods+n, strategy)
			calls = append(calls, measure{what: "cloud calls " + what, unit: "calls", command: fmt.Sprintf(command, n)})
			seconds = append(seconds, measure{what: "time " + what, unit: "s", command: fmt.Sprintf(command, n)})
			pods += n
		}
		g.calls, g.seconds = append(g.calls, calls), append(g.seconds, seconds)
		g.failed = append(g.failed, measure{what: fmt.Sprintf("failed ADDs of %d, %s", agentPods, strategy), unit: "ADD", command: fmt.Sprintf(command, agentPods)})
	}
	return g
}

// run lets all pods come to a fresh node.
func (g *growthOfPool) run(strategy int, n *agentNode) error {
	failed := 0
	for i, size := range podGroups {
		before := n.changes()
		seconds, fails, err := n.attach(size)
		if err != nil {
			return err
		}
		failed += fails
		if err := n.settle(); err != nil {
			return err
		}
		if i > 0 {
			g.calls[strategy][i-1].add(float64(n.changes() - before))
			g.seconds[strategy][i-1].add(seconds)
		}
	}
	g.failed[strategy].add(float64(failed))
	return n.cloud.Account.Check()
}

func (g *growthOfPool) report(b *bench) {
	// One call for each ENI that gets addresses is the least that a cloud allows.
	// From 48 addresses on that is all of them, the first for its last two.
	least := []float64{1, float64((agentPool + slotsPerENI - 1) / slotsPerENI)}
	for i := range least {
		calls, seconds := g.calls, g.seconds
		b.report.add([]measure{calls[0][i], calls[1][i], seconds[0][i], seconds[1][i]},
			target{of: calls[0][i], want: least[i]},
			target{of: calls[0][i], ref: &calls[1][i], shown: true},
			target{of: seconds[0][i], ref: &seconds[1][i], shown: true})
	}
	b.report.add(slices.Clone(g.failed), target{of: worst(g.failed[0]), want: 0}, target{of: worst(g.failed[1]), shown: true})
}

func (b *bench) agentSize() error {
	info, err := os.Stat(b.bin.path("enipool-agent"))
	if err != nil {
		return err
	}
	b.report.add([]measure{{what: "size of enipool-agent", unit: "MB", command: "CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -ldflags '-s -w'",
		values: []float64{float64(info.Size()) / 1e6}}})
	return nil
}

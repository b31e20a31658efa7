// Command cluster measures enipool-operator with a whole cluster: real etcd and API server, the operator's own processes, an
// account with EC2's buckets behind a socket, and thousands of agents of the real code in this process. It writes
// test/bench/CLUSTER.md. A bar that is missed is a result and no failure.
//
// Nodes and pods are written through the API, as a kubelet and a scheduler write them. What is left out of a node is its
// kernel and its node cache's file: the lines are in memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/enipool/enipool/pkg/kube"
)

func main() {
	var s sizes
	var out, only string
	flag.IntVar(&s.nodes, "nodes", 5000, "nodes of the cluster that grows")
	flag.IntVar(&s.pods, "pods", 150_000, "pods on them, the same number on each")
	flag.DurationVar(&s.arrive, "arrive", 10*time.Minute, "over how long they come")
	flag.IntVar(&s.atOnce, "at-once", 1000, "nodes that begin at once, with as many pods each")
	flag.DurationVar(&s.quiet, "quiet", 6*time.Minute, "how long the cluster is watched when nothing happens")
	flag.IntVar(&s.rates, "rates", 1, "how many times EC2's the account's rates are: with 20 a cluster grows in minutes, where rest and failover are of interest")
	flag.DurationVar(&s.settle, "settle", 10*time.Second, "the operator's settle")
	flag.BoolVar(&s.phases, "phases", true, "write the phase and the address of each pod that has one, as a kubelet does")
	flag.StringVar(&s.operator, "operator", ".build/enipool-operator", "the operator's program")
	flag.StringVar(&out, "out", "test/bench/CLUSTER.md", "the file to write, empty for none")
	flag.StringVar(&only, "only", "", "only the parts whose name matches this regular expression: at-once, growth, rest, failover (these two of the cluster that has grown), per-node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kube.TakeLogs(slog.New(slog.DiscardHandler))
	ctrllog.SetLogger(logr.Discard())
	if err := runAll(ctx, s, only, out, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// sizes say how much is measured.
type sizes struct {
	nodes, pods, atOnce   int
	rates                 int
	arrive, quiet, settle time.Duration
	phases                bool
	operator              string
}

// podsPerNode is the same for all nodes.
func (s sizes) podsPerNode() int { return max(1, s.pods/max(1, s.nodes)) }

// runAll measures the parts, one after the other. What a part has found stays, though a later one fails.
func runAll(ctx context.Context, s sizes, only, out string, screen io.Writer) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	r := &report{sizes: s, screen: screen, isWanted: match.MatchString, file: out}
	var failed error
	for _, part := range []struct {
		name string
		run  func(context.Context, *report) error
	}{{"at-once", measureAtOnce}, {"per-node", measurePerNode}, {"growth", measureGrowth}} {
		if !r.isWanted(part.name) {
			continue
		}
		if err := part.run(ctx, r); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", part.name, err))
			r.missing = append(r.missing, part.name)
		}
		failed = errors.Join(failed, r.save())
	}
	fmt.Fprintln(screen, r.text())
	return failed
}

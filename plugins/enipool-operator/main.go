// Command enipool-operator calls the cloud for the nodes of a cluster, in place of their agents: one budget for the
// account, one describe for all, and no credentials on nodes.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/enipool/enipool/pkg/clouds/region"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/operatorconf"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/classify"
	pages "github.com/enipool/enipool/pkg/operator/web"
	"github.com/enipool/enipool/pkg/status/web"
	"github.com/enipool/enipool/plugins/enipool-operator/cluster"
)

// release is set by the linker.
var release = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runCommand(ctx, os.Args[1:], os.Stdout, os.Stderr, takeLogs)
	stop()
	os.Exit(code)
}

// runCommand is the program: 0 is success, 1 an operator that could not go on, 2 a wrong call or configuration.
// takeLogs is told of the log before anything of the Kubernetes libraries is used.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer, takeLogs func(*slog.Logger)) int {
	var file string
	wrongCall := true
	root := &cobra.Command{
		Use:   "enipool-operator",
		Short: "Call the cloud for all nodes of a cluster",
		Long: `Call the cloud for all nodes of a cluster, in place of their agents.

It serves the nodes whose agents have cloud.provider: operator. Of several operators one
leads; the others wait for its lease. SIGTERM ends it when the requests that it has sent
have ended, and another leads at once.`,
		Example: "  enipool-operator --config /etc/enipool/operator.yaml",
		Version: release,
		Args:    func(cmd *cobra.Command, args []string) error { return config.UnknownArgument(cmd.Name(), nil, args) },
		// The library would add completions, and say of a wrong word that it is no command.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		SilenceErrors:     true,
		SilenceUsage:      true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := prepare(file, stderr, takeLogs)
			if err != nil {
				return err
			}
			wrongCall = false
			return p.run(cmd.Context())
		},
	}
	root.Flags().StringVar(&file, "config", "/etc/enipool/operator.yaml", "the configuration file")
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "enipool-operator: %v\n", err)
	if wrongCall {
		return 2
	}
	return 1
}

// process is an operator with what works beside it.
type process struct {
	conf     operatorconf.Config
	operator *operator.Operator
	classify func(context.Context) // nil without topologies
	metrics  *pages.Metrics
	events   *cluster.Events
	election cluster.Election
	log      *slog.Logger
}

// prepare makes all that a run needs. It calls neither the cloud nor the API server.
func prepare(file string, stderr io.Writer, takeLogs func(*slog.Logger)) (*process, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w; --config names the file", err)
	}
	conf, err := operatorconf.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", file, err)
	}
	log := newLog(conf, stderr)
	takeLogs(log)
	config, err := kube.Load(conf.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w; the key kubeconfig says where the API server is", err)
	}
	// Nodes that come at once are written one by one, as fast as the server takes it with 5,000 of them.
	config.QPS, config.Burst = 200, 400
	objects, err := cluster.New(config, log)
	if err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(cluster.LeaseConfig(config))
	if err != nil {
		return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
	}
	gate := operator.NewGate(operator.Wall{})
	metrics := pages.New(release)
	account, actions, err := region.Open(conf, gate.Admit, metrics.Called, log)
	if err != nil {
		return nil, err
	}
	events, err := cluster.NewEvents(config)
	if err != nil {
		return nil, err
	}
	of, err := topologies(conf, config, log)
	if err != nil {
		return nil, err
	}
	options := operator.Options{Region: account, Objects: objects, Lease: conf.Lease(), Timeout: conf.Cloud.Timeout, Gate: gate, Actions: actions,
		Describe: conf.Cloud.Describe, LeakAge: conf.LeakAge, Share: conf.Share, Budget: conf.Budget, Observe: conf.Observe, Cluster: conf.Cloud.Cluster, Log: log, Meter: metrics, Tell: events.Tell, Families: conf.Families}
	if of != nil {
		options.Claims = cluster.Claims{Topologies: of}
	}
	o, err := operator.New(options)
	if err != nil {
		return nil, err
	}
	metrics.Show(o, slices.Sorted(maps.Keys(account.Buckets()))...)
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for the lease's holder: %w", err)
	}
	pods := classifier(conf, of, o, events, log)
	return &process{conf: conf, operator: o, classify: pods, metrics: metrics, events: events, log: log, election: cluster.Election{Client: set.CoordinationV1(), Name: "enipool-operator",
		Namespace: cmp.Or(conf.Namespace, os.Getenv("POD_NAMESPACE"), "kube-system"),
		Identity:  host + "_" + rand.Text()[:8], // two processes of a host are two candidates
		Duration:  operatorconf.LeaseDuration, Log: log, Recorder: events.Recorder(),
		All: cluster.ListLeases(set.CoordinationV1(), "enipool-operator")}}, nil
}

// takeLogs sends what the Kubernetes libraries log to the program's log. They have one for the whole process.
func takeLogs(log *slog.Logger) {
	kube.TakeLogs(log)
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
}

func newLog(conf operatorconf.Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: conf.LogLevel}
	if conf.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// run stands for election, leads, and serves the pages until ctx ends.
func (p *process) run(ctx context.Context) error {
	p.log.Info("started", "release", release, "provider", p.conf.Cloud.Provider, "cluster", p.conf.Cloud.Cluster, "observe", p.conf.Observe, "listen", p.conf.Listen)
	defer p.events.Close()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		return web.Serve(ctx, p.conf.Listen, p.metrics.Handler(p.operator, p.conf.Profile), p.log)
	})
	all.Go(func() error { return p.election.Run(ctx, p.lead) })
	return all.Wait()
}

// topologies returns what reads and writes objects of topologies, nil where there are none: then nothing of them is read.
func topologies(conf operatorconf.Config, config *rest.Config, log *slog.Logger) (*cluster.Topologies, error) {
	if !conf.Topologies {
		return nil, nil
	}
	return cluster.NewTopologies(config, log)
}

// classifier returns what classifies pods while the operator leads, nil where there are no topologies.
func classifier(conf operatorconf.Config, objects *cluster.Topologies, o *operator.Operator, events *cluster.Events, log *slog.Logger) func(context.Context) {
	if objects == nil {
		return nil
	}
	options := classify.Options{Objects: objects, Families: conf.Families, ZoneLabels: o.ZoneLabels, CountOf: o.CountOf, Tell: events.Tell, Log: log, Clock: operator.Wall{}}
	return func(ctx context.Context) { classify.Run(ctx, options) }
}

// lead does all that one operator of a cluster does, for a term.
func (p *process) lead(ctx context.Context, l operator.Lead) error {
	if p.classify != nil {
		beside, stop := context.WithCancel(ctx)
		var under sync.WaitGroup
		defer under.Wait()
		defer stop()
		under.Go(func() { p.classify(beside) })
	}
	return p.operator.Run(ctx, l)
}

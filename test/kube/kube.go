// Package kube runs real Kubernetes for the tests of this project: etcd, API
// server, scheduler and controller manager on a loopback address of their own, and
// nodes with kubelet and containerd in namespaces of their own. The programs are
// those of `scripts/kube.sh build`. Whatever it starts ends with the test.
package kube

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Options tell what a cluster has besides etcd and the API server.
type Options struct {
	Scheduler bool

	// ControllerManager brings Deployments and Jobs to life, and service accounts:
	// without it pods need none.
	ControllerManager bool

	// Fairness lets the API server put requests before others by FlowSchemas. It takes some time to begin.
	Fairness bool
}

// Config is how the administrator reaches the API server.
type Config struct {
	Host  string // https://ADDRESS:PORT
	CA    string // PEM
	Token string
}

// Cluster is a control plane and its nodes. Its methods fail the test that started
// it.
type Cluster struct {
	// APIServer and the others stop and start when a test says so. Scheduler and
	// ControllerManager are nil unless the options ask for them.
	APIServer, Scheduler, ControllerManager *Program

	t     testing.TB
	bin   string // folder of the programs
	dir   string // of all files
	host  string // loopback address
	token string // of the administrator
	admin string // the administrator's kubeconfig
	ca    *authority
	etcd  *Program
	route *egress

	mu    sync.Mutex
	nodes []*Node
}

// The service network. Every node answers for the API server's own address in it.
const (
	serviceNet = "10.96.0.0/16"
	serviceIP  = "10.96.0.1"
)

// Patience is how long a program may take for what takes a second or two on an
// idle machine.
const Patience = 3 * time.Minute

// clusters counts those that this process started; each has its own address.
var clusters atomic.Uint32

// Start starts a control plane and waits until it serves. The test is skipped as
// by Need.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	Need(t)
	removeStale()
	bin, err := Assets()
	if err != nil {
		t.Fatal(err)
	}
	pid, n := os.Getpid(), clusters.Add(1)
	told := &reasons{TB: t}
	c := &Cluster{t: told, bin: bin, token: rand.Text(),
		// An address for each: known ports can then be used, which nobody else takes
		// between looking for a free one and listening on it.
		host: fmt.Sprintf("127.%d.%d.%d", 64+n%128, pid>>8&0xff, pid&0xff)}
	c.dir, err = makeFolder(n)
	c.must(err)
	t.Cleanup(func() {
		c.end()
		told.repeat()
	})
	c.must(c.writeSecrets())
	c.admin = c.Kubeconfig("admin")
	c.route, err = openEgress(c)
	c.must(err)
	c.startControlPlane(o)
	return c
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// path returns where the cluster keeps a file of its own.
func (c *Cluster) path(name ...string) string {
	return filepath.Join(append([]string{c.dir}, name...)...)
}

// T is the test that started the cluster. What fails by it is told once more after the
// programs' logs.
func (c *Cluster) T() testing.TB { return c.t }

// end ends every process and removes every file; of a failed test the ends of the
// logs are shown.
func (c *Cluster) end() {
	for _, n := range c.nodes {
		n.end()
	}
	for _, p := range []*Program{c.Scheduler, c.ControllerManager, c.APIServer, c.etcd} {
		p.Kill()
	}
	if c.route != nil {
		c.route.Close()
	}
	removeFolder(c.t, c.dir)
}

// Eventually waits until done returns nil. It fails the test with done's last error
// if that takes longer than anything should, and with what the others say then of
// how things are.
func (c *Cluster) Eventually(what string, done func() error, others ...func() string) {
	c.t.Helper()
	err := Wait(Patience, done)
	if err == nil {
		return
	}
	for _, say := range others {
		err = fmt.Errorf("%w\n%s", err, say())
	}
	c.t.Fatalf("%s: %v", what, err)
}

// Wait calls done until it returns nil, or returns its last error when the time is
// up. It lets as much time pass between the calls as the last one took: many run a
// program, and would otherwise keep a processor from what they wait for.
func Wait(limit time.Duration, done func() error) error {
	deadline := time.Now().Add(limit)
	for {
		began := time.Now()
		err := done()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(max(20*time.Millisecond, time.Since(began)))
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/test/kube"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// burstPods are bound at once; the equation wants burstPool addresses for them, which one
// call brings.
const burstPods, burstPool = 40, 48

// BenchmarkPodsBoundAtOnce runs the agent's own process on a node without pods. The watch tells it
// of 40 that are bound at once, and the runtime calls the plugin for one after the other.
func BenchmarkPodsBoundAtOnce(b *testing.B) {
	programsFolder := os.Getenv(programsEnv)
	if programsFolder == "" {
		b.Skip("needs the programs and namespaces of go run ./test/bench -only agent-burst")
	}
	kube.Need(b)
	for _, apart := range burstSpacings {
		b.Run(apart.String(), func(b *testing.B) {
			for b.Loop() {
				c := clusterNode{B: b, bench: &bench{bin: programs(programsFolder)}, api: kube.Start(b, kube.Options{})}
				c.burst(apart)
			}
		})
	}
}

// burst binds the pods and reports how long it took until the node cache had all addresses, and what
// became of the ADDs.
func (c clusterNode) burst(apart time.Duration) {
	cloud, err := c.bench.newCloud()
	c.must(err)
	defer func() { c.must(cloud.Close()) }()
	n, err := cloud.newAgentNode(c.bench, strategies[0])
	c.must(err)
	var closed sync.RWMutex
	c.closed = &closed
	stop := c.relay(n.space)
	defer stop()
	c.addNode(n.name)
	n.keys = fmt.Sprintf("kubernetes: {enabled: true, kubeconfig: %q}\n", c.api.Kubeconfig("admin"))
	c.must(n.start())
	defer func() { c.must(n.stop()) }()
	n.pods, err = newSpaces(c.bench.unique(n.name+"-pod"), burstPods)
	c.must(err)

	closed.Lock() // what the API server says waits for the last of them
	n.uids = c.bindAtOnce(n.name)
	closed.Unlock()
	began := time.Now()
	var failed atomic.Int64
	var adds sync.WaitGroup
	for i, pod := range n.pods {
		adds.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			if _, err := n.add(pod, i); err != nil {
				failed.Add(1)
				c.Logf("ADD %d: %v", i, err)
			}
		})
	}
	complete, err := n.complete(began)
	adds.Wait()
	c.must(err)
	c.ReportMetric(complete.Seconds(), "complete-s")
	c.ReportMetric(float64(failed.Load()), "failed-ADDs")
}

// complete waits until the node cache has all addresses and returns how long that took. It reads the file's
// head: what the agent says of itself comes later, and whoever reads it all takes time from agent and ADDs.
func (n *agentNode) complete(began time.Time) (time.Duration, error) {
	for time.Since(began) < time.Minute {
		if n.cached() >= burstPool {
			return time.Since(began), nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, errors.New("the pool is not complete after a minute")
}

var cacheHead = regexp.MustCompile(`^enipool-node-cache .* addresses (\d+) `)

// cached returns how many addresses the node cache has by its head, 0 where there is none yet.
func (n *agentNode) cached() int {
	file, err := os.Open(n.cache)
	if err != nil {
		return 0
	}
	defer file.Close()
	head := make([]byte, 512) // a line, see pkg/nodecache/DESIGN.md
	if _, err := file.ReadAt(head, 0); err != nil {
		return 0
	}
	found := cacheHead.FindSubmatch(head)
	if found == nil {
		return 0
	}
	addresses, _ := strconv.Atoi(string(found[1]))
	return addresses
}

// bindAtOnce makes pods that are bound to the node from their beginning.
func (c clusterNode) bindAtOnce(node string) (uids []string) {
	its := c.api.Config()
	api, err := kubernetes.NewForConfig(&rest.Config{Host: its.Host, BearerToken: its.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(its.CA)}, QPS: -1})
	c.must(err)
	uids = make([]string, burstPods)
	var g errgroup.Group
	for i := range uids {
		g.Go(func() error {
			made, err := api.CoreV1().Pods(metav1.NamespaceDefault).Create(context.Background(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: podName(node, i)},
				Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/team/web:v1"}}},
			}, metav1.CreateOptions{})
			if err == nil {
				uids[i] = string(made.UID)
			}
			return err
		})
	}
	c.must(g.Wait())
	return uids
}

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
)

var (
	specReport = flag.String("specs.report", "", "run Kubernetes' own specs, and write ginkgo's report of them to this `file`: make conformance")
	specFocus  = flag.String("specs.focus", "", "which specs, by a regular expression")
	specLabels = flag.String("specs.labels", "", "which of them, by a filter of ginkgo's for labels")
	specProxy  = flag.String("specs.proxy", "nftables", "the mode of kube-proxy")
	specCount  = flag.Bool("specs.scheduling", false, "with the component that lets the scheduler count addresses")
	specPtp    = flag.Bool("specs.ptp", false, "with ptp and host-local in place of enipool, to compare")
	specProcs  = flag.Int("specs.procs", 4, "how many specs run at once")
)

// smallENIs are those of nodes where specs run: pods that talk to each other are seldom on one ENI.
var smallENIs = eni.Limits{ENIs: 15, V4: 6}

// dnsIP is the cluster's DNS, which so many pods are.
var dnsIP = netip.MustParseAddr("10.96.0.10")

const dnsPods = 2

// Kubernetes' own specs are run on nodes with many small ENIs. One that fails is a result, and no
// failure of this.
func TestSpecsOfKubernetes(t *testing.T) {
	if *specReport == "" {
		t.Skip("takes some minutes: make conformance")
	}
	c := start(t, "specs")
	bin, err := kube.Specs()
	c.must(err)
	archives, lacking := c.specImages(bin)
	c.addSpecNodes([2]string{"specs-1", "specs-2"}, kube.NodeOptions{DNS: dnsIP, Images: archives})
	c.StartServiceProxies(*specProxy)
	c.Apply(fmt.Sprintf(coreDNS, dnsPods, dnsIP))
	c.Kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=3m")
	t.Logf("images that can't be made: %s", strings.Join(lacking, " "))
	c.runSpecs(bin)
	c.onlyDNSHasAddresses()
}

// onlyDNSHasAddresses waits until the pods of the specs have given theirs back.
func (c *cluster) onlyDNSHasAddresses() {
	c.t.Helper()
	if *specPtp {
		return
	}
	c.Eventually("addresses of the specs' pods are free", func() error {
		var used []int
		for _, n := range c.nodes {
			used = append(used, sum(n.used()))
		}
		if sum(used) != dnsPods {
			return fmt.Errorf("addresses are used as in %v by %d pods of CoreDNS", used, dnsPods)
		}
		return nil
	})
}

// addSpecNodes starts nodes with the network that is asked for.
func (c *cluster) addSpecNodes(names [2]string, o kube.NodeOptions) {
	c.t.Helper()
	if *specPtp {
		c.addPtpNodes(o, names)
		return
	}
	for _, name := range names {
		c.addNodeWith(sim.NodeSpec{Name: name, Limits: smallENIs, Subnet: lab.Subnet.ID}, o)
	}
	on := "base"
	if *specCount {
		on = simulated
	}
	c.install(c.overlay(on, first, settings, ""))
}

// runSpecs has ginkgo run them. It ends with an error where a spec fails.
func (c *cluster) runSpecs(bin string) {
	c.t.Helper()
	own, err := kube.Assets()
	c.must(err)
	report, err := filepath.Abs(*specReport)
	c.must(err)
	c.must(os.MkdirAll(filepath.Dir(report), 0o755))
	cmd := exec.Command(filepath.Join(bin, "ginkgo"), fmt.Sprint("--procs=", *specProcs), "--timeout=3h", "--no-color", "--silence-skips",
		"--focus="+*specFocus, "--label-filter="+*specLabels, "--output-dir="+filepath.Dir(report), "--json-report="+filepath.Base(report),
		filepath.Join(bin, "e2e.test"), "--", "--kubeconfig="+c.Kubeconfig("admin"), "--kubectl-path="+filepath.Join(own, "kubectl"),
		"--provider=local", "--dump-logs-on-failure=false")
	log, err := os.Create(report + ".log")
	c.must(err)
	defer log.Close()
	// agnhost is asked at the addresses of pods, never by way of this machine.
	cmd.Dir, cmd.Env = c.t.TempDir(), append(os.Environ(), "no_proxy=*")
	cmd.Stdout, cmd.Stderr = log, log
	p, err := lab.Start(cmd, isolate.OnThread)
	c.must(err)
	<-p.Ended
	if exit := new(exec.ExitError); p.Err != nil && !errors.As(p.Err, &exit) {
		c.must(p.Err)
	}
	c.must(nonEmpty(report))
}

func nonEmpty(file string) error {
	info, err := os.Stat(file)
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%s is empty; %[1]s.log tells why", file)
	}
	return err
}

// coreDNS is the cluster's DNS, as its own add-on has it; it asks nobody else.
const coreDNS = `apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            fallthrough in-addr.arpa ip6.arpa
            ttl 30
        }
        cache 30
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  replicas: %d
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      containers:
      - name: coredns
        image: localhost/coredns:1
        args: [-conf, /etc/coredns/Corefile]
        readinessProbe: {httpGet: {path: /ready, port: 8181}}
        volumeMounts: [{name: config, mountPath: /etc/coredns}]
      volumes: [{name: config, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns, kubernetes.io/cluster-service: "true"}}
spec:
  clusterIP: %s
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
`

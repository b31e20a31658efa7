package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
)

func TestMain(m *testing.M) { nettest.Main(m) }

const objects = `
apiVersion: v1
kind: Node
metadata: {name: ip-10-1, labels: {topology.kubernetes.io/zone: eu-west-3a}}
spec: {providerID: "aws:///eu-west-3a/i-1"}
---
apiVersion: v1
kind: Node
metadata: {name: ip-10-2}
---
apiVersion: enipool.io/v1alpha1
kind: NodeNetwork
metadata: {name: ip-10-1}
spec: {mode: Operator, slots: 48, waiting: 4}
---
apiVersion: enipool.io/v1alpha1
kind: Subnet
metadata: {name: subnet-0a1}
spec: {use: Shared}
---
apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: databases}
spec: {subnets: [{id: subnet-0a1}], strategy: {type: Sticky, ttl: 24h}}
---
apiVersion: enipool.io/v1alpha1
kind: AddressClaim
metadata: {name: 10.1.0.9}
spec: {topology: databases, subnet: subnet-0a1, address: 10.1.0.9, namespace: db, pod: db-0, keep: TTL, ttl: 24h}
---
apiVersion: v1
kind: Pod
metadata: {name: op, namespace: kube-system, labels: {app.kubernetes.io/name: enipool-operator}}
spec: {nodeName: ip-10-2, hostNetwork: true, containers: [{name: c, image: "none:1"}]}
`

// address is the node's that the operator's pod listens on.
const address = "192.0.2.7"

// On a real API server kubectl shows the columns, the commands show the same, and an operator's pages are reached through it.
func TestARealAPIServer(t *testing.T) {
	nettest.Need(t)
	kube.Need(t)
	c := kube.Start(t, kube.Options{})
	c.Kubectl("apply", "--server-side", "--kustomize=../../../conf/kubernetes/crds")
	c.Kubectl("apply", "--server-side", "--filename=../../../conf/kubernetes/topologies/crds.yaml")
	c.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io", "crd/subnets.enipool.io", "crd/podsubnettopologies.enipool.io", "crd/addressclaims.enipool.io")
	c.Apply(objects)
	c.Kubectl("patch", "nodenetwork", "ip-10-1", "--subresource=status", "--type=merge", `--patch={"status": {"mode": "Operator", "slots": 32, "interfaces": 2, "zone": "eu-west-3a", "revision": 7,
		"instance": "i-1", "instanceType": "m5.large", "causes": [{"reason": "SubnetFull", "message": "30 needed, most room 20 in a"}],
		"conditions": [{"type": "Satisfied", "status": "False", "reason": "SubnetFull", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	c.Kubectl("patch", "subnet.enipool.io", "subnet-0a1", "--subresource=status", "--type=merge",
		`--patch={"status": {"zone": "eu-west-3a", "v4": "10.1.0.0/20", "free": 9, "room": 0, "owed": 9, "state": "Full"}}`)
	flags := []string{"--kubeconfig", c.Kubeconfig("admin")}

	t.Run("columns", func(t *testing.T) {
		sameCells(t, c.Kubectl("get", "enn"), "NAME MODE WANT HAVE WAITING ENIS ZONE SATISFIED WHY AGE", "ip-10-1 Operator 48 32 4 2 eu-west-3a False SubnetFull")
		sameCells(t, c.Kubectl("get", "enn", "-o", "wide"), "NAME MODE WANT HAVE WAITING ENIS ZONE SATISFIED WHY AGE INSTANCE TYPE REVISION", "ip-10-1 Operator 48 32 4 2 eu-west-3a False SubnetFull")
		sameCells(t, c.Kubectl("get", "esn"), "NAME USE ZONE CIDR FREE ROOM OWED STATE AGE", "subnet-0a1 Shared eu-west-3a 10.1.0.0/20 9 0 9 Full")
	})
	t.Run("commands", func(t *testing.T) {
		for _, tt := range []struct{ what, want string }{
			{"nodes", "ip-10-1  Operator  48    32    4        -    2     eu-west-3a"}, {"nodes", "ip-10-2  -         -"}, {"nodes", "nobody leads, and nobody ever has"},
			{"nodes", "SubnetFull: 30 needed, most room 20 in a"}, {"subnets", "subnet-0a1  Shared  Full"},
			{"topologies", "databases  Sticky 24h  0         subnet-0a1"}, {"claims", "10.1.0.9  databases  db/db-0"},
		} {
			if code, out, errs := run(Command(), append([]string{"cluster", tt.what}, flags...)...); code != 0 || !strings.Contains(out, tt.want) {
				t.Errorf("%s: exit %d, %q is not in\n%s%s", tt.what, code, tt.want, out, errs)
			}
		}
	})
	t.Run("pages", func(t *testing.T) {
		nettest.Run(t, "ip", "address", "add", address+"/32", "dev", "lo")
		c.Kubectl("patch", "pod", "op", "--namespace=kube-system", "--subresource=status", "--type=merge", `--patch={"status": {"phase": "Running", "podIP": "`+address+`", "podIPs": [{"ip": "`+address+`"}]}}`)
		code, _, errs := run(Command(), append([]string{"cluster", "budget"}, flags...)...)
		if code != 2 || !strings.Contains(errs, "error trying to reach service") || !strings.Contains(errs, "operator-monitoring") {
			t.Errorf("nobody listens there: exit %d, %s", code, errs)
		}
		l, err := net.Listen("tcp", address+":9810")
		if err != nil {
			t.Fatal(err)
		}
		pages := &http.Server{Handler: pagesOf(knows{}), ReadHeaderTimeout: time.Minute}
		ended := make(chan error, 1)
		go func() { ended <- pages.Serve(l) }()
		defer func() { _ = pages.Shutdown(context.Background()); <-ended }()
		for _, tt := range [][]string{{"budget", "AssignPrivateIpAddresses"}, {"why", "behind 12 others", "ip-10-1"}} {
			if code, out, errs := run(Command(), append(append([]string{"cluster", tt[0]}, tt[2:]...), flags...)...); code != 0 || !strings.Contains(out, tt[1]) {
				t.Errorf("%s: exit %d, %q is not in\n%s%s", tt[0], code, tt[1], out, errs)
			}
		}
	})
	t.Run("watch", func(t *testing.T) {
		api, err := Open(flags[1], "", "kube-system")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		changed, ended := make(chan struct{}, 1), make(chan struct{})
		go func() { defer close(ended); api.watchNetworks(ctx, networkKind, changed) }()
		defer func() { cancel(); <-ended }()
		c.Eventually("a change", func() error {
			c.Kubectl("annotate", "--overwrite", "enn", "ip-10-1", "test="+time.Now().Format(time.RFC3339Nano))
			select {
			case <-changed:
				return nil
			default:
				return errors.New("none is told of")
			}
		})
	})
}

// sameCells compares what kubectl shows with a head and with the first cells of a row.
func sameCells(t *testing.T, out, head, row string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[0]), " ") != head || !strings.HasPrefix(strings.Join(strings.Fields(lines[1]), " ")+" ", row+" ") {
		t.Errorf("kubectl shows\n%swant\n%s\n%s", out, head, row)
	}
}

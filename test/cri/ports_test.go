package cri

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// onPort maps a port of the node to port 80 of the pod.
func onPort(host int32) option {
	return func(c *api.PodSandboxConfig) {
		c.PortMappings = []*api.PortMapping{{Protocol: api.Protocol_TCP, HostPort: host, ContainerPort: 80}}
	}
}

// A pod of another ENI than the node's own shows whether the answers take the way
// back that they came.
func TestAHostPortIsReachableFromPodsAndFromTheInternet(t *testing.T) {
	for name, source := range map[string]string{"ports": conflistSource, "chain": chainSource} {
		t.Run(name, func(t *testing.T) { testHostPort(t, name, source) })
	}
}

func testHostPort(t *testing.T, region, source string) {
	t.Parallel()
	r := newRegion(t, region)
	m, other := newNode(r, "a", plan{limits: tiny}), newNode(r, "b", plan{limits: small})
	m.publish(m.conflistOf(source))
	first := m.run("first")
	m.run("second") // the first ENI is full
	web := m.run("web", onPort(8080))
	if index, err := m.eniOf(web.ip); err != nil || index != 1 {
		t.Fatalf("the pod is on ENI %d, %v; want 1", index, err)
	}
	web.start("httpd", "-f", "-p", "80", "-h", "/bin")
	eventually(t, "the web server answers", func() error { return m.Do(func() error { return get(web.ip.String() + ":80") }) })
	for from, do := range map[string]func(func() error) error{"a pod of another node": other.run("client").do,
		"another node": other.Do, "the node itself": m.Do, "a pod of the node": first.do, "the internet": r.Network.Internet().Do} {
		if err := do(func() error { return get(m.primary().String() + ":8080") }); err != nil {
			t.Errorf("from %s: %v", from, err)
		}
	}
	web.end()
	if err := other.Do(func() error { return get(m.primary().String() + ":8080") }); err == nil {
		t.Error("the port is open although its pod is gone")
	}
}

// get fetches something of 100 kB and more from a web server.
func get(address string) error {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /busybox HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(conn); err != nil || got.Len() < 100_000 {
		return fmt.Errorf("%d bytes, %v", got.Len(), err)
	}
	return nil
}

func limited(c *api.PodSandboxConfig) {
	c.Annotations = map[string]string{"kubernetes.io/ingress-bandwidth": "8M", "kubernetes.io/egress-bandwidth": "4M"}
}

func TestABandwidthAnnotationIsAppliedAndGoesWithThePod(t *testing.T) {
	for name, source := range map[string]string{"bandwidth": conflistSource, "bandwidthchain": chainSource} {
		t.Run(name, func(t *testing.T) { testBandwidth(t, name, source) })
	}
}

func testBandwidth(t *testing.T, region, source string) {
	t.Parallel()
	m := newNode(newRegion(t, region), "a", plan{limits: small})
	m.publish(m.conflistOf(source))
	p := m.run("slow", limited)
	m.run("fast").reach(internet)
	p.reach(internet)
	shaped := m.Run("sh", "-c", "tc qdisc show; for dev in $(ls /sys/class/net); do tc class show dev $dev; done")
	for _, rate := range []string{"8Mbit", "4Mbit"} {
		if !strings.Contains(shaped, rate) {
			t.Errorf("no queue has a rate of %s:\n%s", rate, shaped)
		}
	}
	p.end()
	if left := m.Run("tc", "qdisc", "show"); strings.Contains(left, "tbf") || strings.Contains(left, "ingress") {
		t.Errorf("queues of the pod are left:\n%s", left)
	}
}

package e2e

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// A container that docker publishes has its port by a rule that comes before enipool's, and
// a proxy of docker's listens on it as well: pool check says that the container has it.
func TestAHostPortThatAPublishedContainerHasIsTold(t *testing.T) {
	const taken = "tcp port 8080: docker (iptables -t nat, chain DOCKER) comes before enipool's rule and leads it to 172.17.0.2:80: what is sent to the node does not reach the pod"
	const leads = "tcp port 8080 leads to the pod: a program of the node that listens there"
	const publish = "iptables -t nat -N DOCKER; iptables -t nat -%s PREROUTING -m addrtype --dst-type LOCAL -j DOCKER; iptables -t nat -A DOCKER -i docker0 -j RETURN; iptables -t nat -A DOCKER %s ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80"
	for _, c := range []struct {
		name                 string
		firewall             ipam.Firewall
		routing              ipam.Routing
		where, address, told string
		toPod                bool
	}{
		{"nftables", ipam.Nftables, ipam.Map, "A", "", taken, false},
		{"nftables, published on the loopback", ipam.Nftables, ipam.Map, "A", "-d 127.0.0.1/32", leads, true},
		{"iptables, docker first", ipam.Iptables, ipam.Rule, "I", "", taken, false},
		{"iptables, enipool first", ipam.Iptables, ipam.Rule, "A", "", leads, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVPC(t, ipam.Settings{Routing: c.routing, Firewall: c.firewall, Families: []eni.Family{eni.IPv4}})
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
			tellAddress(t, v.pods["a"], "80")
			tellAddress(t, v.node, "8080") // docker-proxy
			pod := v.addr(eni.IPv4, 0).String()
			if seen := query(v.internet, "tcp4", "10.0.0.10:8080"); seen != pod {
				t.Fatalf("without docker the port leads to %s, want the pod", seen)
			}
			v.node.Run(t, "sh", "-ec", strings.Replace(strings.Replace(publish, "%s", c.where, 1), "%s", c.address, 1))
			if lines := v.checkNode(); len(lines) != 1 || !strings.HasPrefix(lines[0], "host port of pod a: "+c.told) {
				t.Errorf("pool check says %q, want one line with %q", lines, c.told)
			}
			if seen := query(v.internet, "tcp4", "10.0.0.10:8080"); (seen == pod) != c.toPod {
				t.Errorf("the port leads to %s, want the pod %v", seen, c.toPod)
			}
		})
	}
}

package firewall_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Rules as docker and kube-proxy make them for port 8080 of all addresses of the node.
const (
	dockerChain    = "iptables -t nat -N DOCKER; iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER; iptables -t nat -A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER; iptables -t nat -A DOCKER -i docker0 -j RETURN; "
	dockerPublish  = dockerChain + "iptables -t nat -A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80"
	dockerNft      = `nft 'add table ip docker-bridges; add chain ip docker-bridges nat-prerouting { type nat hook prerouting priority dstnat; policy accept; }; add rule ip docker-bridges nat-prerouting fib daddr type local counter tcp dport 8080 iifname != "docker0" dnat to 172.17.0.2:80'`
	kubeChains     = "for c in KUBE-SERVICES KUBE-NODEPORTS KUBE-EXT-X KUBE-SVC-X KUBE-SEP-A KUBE-SEP-B KUBE-MARK-MASQ; do iptables -t nat -N $c; done; iptables -t nat -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000; iptables -t nat -A PREROUTING -m comment --comment 'kubernetes service portals' -j KUBE-SERVICES; iptables -t nat -A KUBE-SERVICES -d 10.96.5.5/32 -p tcp -m comment --comment 'default/x cluster IP' -m tcp --dport 8080 -j KUBE-SVC-X; iptables -t nat -A KUBE-SERVICES -m comment --comment 'nodeports; must be last' -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS; iptables -t nat -A KUBE-EXT-X -j KUBE-MARK-MASQ; iptables -t nat -A KUBE-EXT-X -j KUBE-SVC-X; iptables -t nat -A KUBE-SVC-X ! -s 10.0.0.0/16 -d 10.96.5.5/32 -p tcp -m tcp --dport 8080 -j KUBE-MARK-MASQ; iptables -t nat -A KUBE-SVC-X -m statistic --mode random --probability 0.5 -j KUBE-SEP-A; iptables -t nat -A KUBE-SVC-X -j KUBE-SEP-B; for s in A:21 B:22; do iptables -t nat -A KUBE-SEP-${s%%:*} -s 10.0.0.${s##*:}/32 -j KUBE-MARK-MASQ; iptables -t nat -A KUBE-SEP-${s%%:*} -p tcp -m tcp -j DNAT --to-destination 10.0.0.${s##*:}:80; done; "
	kubeNodePort   = kubeChains + "iptables -t nat -A KUBE-NODEPORTS -p tcp -m comment --comment default/x -m tcp --dport %d -j KUBE-EXT-X"
	kubeNft        = `nft 'add table ip kube-proxy; add chain ip kube-proxy mark-for-masquerade { mark set mark or 0x4000; }; add chain ip kube-proxy endpoint-a { ip saddr 10.0.0.21 jump mark-for-masquerade; meta l4proto tcp dnat to 10.0.0.21:80; }; add chain ip kube-proxy endpoint-b { meta l4proto tcp dnat to 10.0.0.22:80; }; add chain ip kube-proxy service-x { ip daddr 10.96.5.5 tcp dport 8080 ip saddr != 10.0.0.0/16 jump mark-for-masquerade; numgen random mod 2 vmap { 0 : goto endpoint-a, 1 : goto endpoint-b }; }; add chain ip kube-proxy external-x { jump mark-for-masquerade; goto service-x; }; add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.5.5 . tcp . 8080 : goto service-x }; }; add map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict; elements = { tcp . %d : goto external-x }; }; add set ip kube-proxy nodeport-ips { type ipv4_addr; elements = { %s }; }; add chain ip kube-proxy services { ip daddr . meta l4proto . th dport vmap @service-ips; ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports; }; add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority dstnat; jump services; }'`
	dockerByDocker = "tcp port 8080: docker (iptables -t nat, chain DOCKER) comes before enipool's rule and leads it to 172.17.0.2:80"
)

func taken(t *testing.T, b ipam.Firewall, ports ...netconf.PodPorts) []string {
	t.Helper()
	f := netconf.NewFirewall(nodeState(b, eni.IPv4))
	f.Ports = ports
	_, list, err := firewall.OthersPorts(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return netconf.PortClaims{Taken: list}.Lines(ports)
}

func podWithPort(number uint16, host string) netconf.PodPorts {
	p := netconf.HostPort{Transport: netconf.TCP, Port: number, PodPort: 80}
	if host != "" {
		p.Host = netip.MustParseAddr(host)
	}
	return netconf.PodPorts{Pod: netip.MustParseAddr("10.0.0.11"), Ports: []netconf.HostPort{p}}
}

func TestAHostPortThatDockerOrKubeProxyTakesFirstIsNamed(t *testing.T) {
	for _, c := range []struct{ name, rules, host, want string }{
		{"nothing", "true", "", ""},
		{"a published container", dockerPublish, "", dockerByDocker},
		{"a published container, port of one address", dockerPublish, "10.0.0.10", "tcp port 8080 of 10.0.0.10: docker"},
		{"docker on nftables", dockerNft, "", "tcp port 8080: docker (nftables table ip docker-bridges, chain nat-prerouting) comes before enipool's rule and leads it to 172.17.0.2:80"},
		{"docker on 127.0.0.1", dockerChain + "iptables -t nat -A DOCKER -d 127.0.0.1/32 ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80", "", ""},
		{"docker at another address", dockerChain + "iptables -t nat -A DOCKER -d 10.0.0.200/32 ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80", "", ""},
		{"docker at another port", strings.ReplaceAll(dockerPublish, "8080", "8081"), "", ""},
		{"docker of UDP", strings.ReplaceAll(dockerPublish, "tcp", "udp"), "", ""},
		{"by another link", "iptables -t nat -A PREROUTING -i lxcbr0 -p tcp --dport 8080 -j REDIRECT --to-ports 15001", "", ""},
		{"from one network", "iptables -t nat -A PREROUTING -s 172.17.0.0/16 -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.9:80", "", ""},
		{"all ports but this", "iptables -t nat -A PREROUTING -p tcp ! --dport 8080 -j DNAT --to-destination 172.17.0.9:80", "", ""},
		{"accepted before it comes to the rule", "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j ACCEPT; " + dockerPublish, "", ""},
		{"a range of ports", "iptables -t nat -A PREROUTING -p tcp --dport 8000:8100 -j REDIRECT --to-ports 15001", "", ""},
		{"a rule of no program that is known", "iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 8080 -j REDIRECT --to-ports 15001", "", "tcp port 8080: a rule of others (iptables -t nat, chain PREROUTING) comes before"},
		{"a NodePort", fmt.Sprintf(kubeNodePort, 8080), "", "tcp port 8080: kube-proxy (iptables -t nat, chain KUBE-NODEPORTS) comes before enipool's rule and leads it to 10.0.0.22:80"},
		{"another NodePort, a Service's own port 8080", fmt.Sprintf(kubeNodePort, 30080), "", ""},
		{"a NodePort in nftables", fmt.Sprintf(kubeNft, 8080, "10.0.0.10"), "", "tcp port 8080: kube-proxy (nftables table ip kube-proxy, chain services) comes before enipool's rule and leads it to 10.0.0.21:80"},
		{"a table of nftables that is called as iptables' is", `nft 'add table inet nat; add chain inet nat PREROUTING { type nat hook prerouting priority dstnat; }; add rule inet nat PREROUTING tcp dport 8080 redirect to :15001'`, "", "tcp port 8080: a rule of others (nftables table inet nat, chain PREROUTING) comes before"},
		{"another NodePort in nftables", fmt.Sprintf(kubeNft, 30080, "10.0.0.10"), "", ""},
		{"a NodePort in nftables at another address", fmt.Sprintf(kubeNft, 8080, "10.0.0.20"), "", ""},
		{"nftables behind enipool's table", strings.ReplaceAll(dockerNft, "priority dstnat", "priority -90"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			newNode(t)
			sh(t, "%s", c.rules)
			lines := taken(t, ipam.Nftables, podWithPort(8080, c.host))
			if (c.want == "") != (len(lines) == 0) || len(lines) > 1 || c.want != "" && !strings.HasPrefix(lines[0], c.want) {
				t.Errorf("told %q, want %q", lines, c.want)
			}
		})
	}
}

func TestAHostPortThatLegacyIptablesTakesFirstIsNamed(t *testing.T) {
	newNode(t)
	legacyIptables(t)
	sh(t, "%s", dockerPublish)
	if lines := taken(t, ipam.Nftables, podWithPort(8080, "")); len(lines) != 1 || !strings.Contains(lines[0], "-t nat, chain DOCKER) comes before enipool's rule and leads it to 172.17.0.2:80") {
		t.Errorf("told %q", lines)
	}
	if lines := taken(t, ipam.Nftables, podWithPort(8081, "")); len(lines) > 0 {
		t.Errorf("another port: told %q", lines)
	}
}

// With iptables enipool's rules and docker's stand in the same chain: the first has the port.
func TestOfTwoRulesInTheSameChainTheFirstHasTheHostPort(t *testing.T) {
	newNode(t)
	const ours = "iptables -t nat -N ENIPODS-PORTIN-4a8f; iptables -t nat -%s PREROUTING -j ENIPODS-PORTIN-4a8f; "
	sh(t, dockerPublish)
	if lines := taken(t, ipam.Iptables, podWithPort(8080, "")); len(lines) != 1 || !strings.Contains(lines[0], "only one of both") {
		t.Errorf("enipool's rules are elsewhere at the same point: told %q", lines)
	}
	sh(t, ours, "A")
	if lines := taken(t, ipam.Iptables, podWithPort(8080, "")); len(lines) != 1 || !strings.HasPrefix(lines[0], dockerByDocker) {
		t.Errorf("docker's is first: told %q", lines)
	}
	sh(t, "iptables -t nat -D PREROUTING -j ENIPODS-PORTIN-4a8f; iptables -t nat -I PREROUTING -j ENIPODS-PORTIN-4a8f")
	if lines := taken(t, ipam.Iptables, podWithPort(8080, "")); len(lines) > 0 {
		t.Errorf("enipool's is first: told %q", lines)
	}
}

// What is read of kube-proxy's rules is for the asked ports, however many there are.
func TestTenThousandServicesTakeNoHostPort(t *testing.T) {
	newNode(t)
	var rules strings.Builder
	rules.WriteString("*nat\n:KUBE-SERVICES -\n:KUBE-SVC-X -\n:KUBE-NODEPORTS -\n-A PREROUTING -j KUBE-SERVICES\n-A KUBE-SVC-X -p tcp -j DNAT --to-destination 10.0.0.21:80\n")
	for i := range 10000 {
		fmt.Fprintf(&rules, "-A KUBE-SERVICES -d 10.96.%d.%d/32 -p tcp -m comment --comment \"default/svc-%d cluster IP\" -m tcp --dport 80 -j KUBE-SVC-X\n", i/256, i%256, i)
	}
	rules.WriteString("-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS\n-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-SVC-X\nCOMMIT\n")
	path := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(path, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, "iptables-restore %s", path)
	start := time.Now()
	if lines := taken(t, ipam.Nftables, podWithPort(8080, "")); len(lines) > 0 {
		t.Errorf("told %q", lines)
	}
	t.Log("it took", time.Since(start))
	if lines := taken(t, ipam.Nftables, podWithPort(30080, "")); len(lines) != 1 {
		t.Errorf("the NodePort behind all of them: told %q", lines)
	}
}

package config

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
)

func TestHostPortsAndLimitsOfARuntime(t *testing.T) {
	at := netip.MustParseAddr
	for _, tt := range []struct {
		name, stdin string
		want        netconf.Extras
	}{
		{"none", `{"runtimeConfig": {"portMappings": [], "bandwidth": {}}}`, netconf.Extras{}},
		{"null", `{"runtimeConfig": {"portMappings": null, "bandwidth": null}}`, netconf.Extras{}},
		{"a port", `{"runtimeConfig": {"portMappings": [{"hostPort": 80, "containerPort": 8080, "protocol": "tcp"}]}}`,
			netconf.Extras{Ports: []netconf.HostPort{{Transport: netconf.TCP, Port: 80, PodPort: 8080}}}},
		{"protocols in any case, addresses of both families, the ends of what is allowed", `{"runtimeConfig": {"portMappings": [
			{"hostPort": 1, "containerPort": 65535, "protocol": "UDP", "hostIP": "10.0.0.1"}, {"hostPort": 1, "containerPort": 1, "protocol": "Sctp", "hostIP": "::"},
			{"hostPort": 65535, "containerPort": 1, "protocol": "tcp", "hostIP": ""}, {"hostPort": 2, "containerPort": 2, "protocol": "tcp", "hostIP": "::ffff:10.0.0.1"}]}}`,
			netconf.Extras{Ports: []netconf.HostPort{{Transport: netconf.UDP, Host: at("10.0.0.1"), Port: 1, PodPort: 65535}, {Transport: netconf.SCTP, Host: at("::"), Port: 1, PodPort: 1},
				{Transport: netconf.TCP, Port: 65535, PodPort: 1}, {Transport: netconf.TCP, Host: at("10.0.0.1"), Port: 2, PodPort: 2}}}},
		{"the same twice is once", `{"runtimeConfig": {"portMappings": [{"hostPort": 80, "containerPort": 80, "protocol": "tcp"},
			{"hostPort": 80, "containerPort": 80, "protocol": "TCP"}]}}`, netconf.Extras{Ports: []netconf.HostPort{{Transport: netconf.TCP, Port: 80, PodPort: 80}}}},
		{"all addresses in several words are one port, in any order", `{"runtimeConfig": {"portMappings": [
			{"hostPort": 80, "containerPort": 80, "protocol": "tcp", "hostIP": "0.0.0.0"}, {"hostPort": 80, "containerPort": 80, "protocol": "tcp", "hostIP": "::"},
			{"hostPort": 80, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 80, "containerPort": 80, "protocol": "tcp", "hostIP": "0.0.0.0"},
			{"hostPort": 81, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 81, "containerPort": 80, "protocol": "tcp", "hostIP": "::"},
			{"hostPort": 80, "containerPort": 80, "protocol": "udp", "hostIP": "0.0.0.0"}, {"hostPort": 80, "containerPort": 81, "protocol": "udp", "hostIP": "::"},
			{"hostPort": 80, "containerPort": 82, "protocol": "tcp", "hostIP": "10.0.0.1"}]}}`,
			netconf.Extras{Ports: []netconf.HostPort{{Transport: netconf.TCP, Port: 80, PodPort: 80}, {Transport: netconf.TCP, Port: 81, PodPort: 80},
				{Transport: netconf.UDP, Host: at("0.0.0.0"), Port: 80, PodPort: 80}, {Transport: netconf.UDP, Host: at("::"), Port: 80, PodPort: 81},
				{Transport: netconf.TCP, Host: at("10.0.0.1"), Port: 80, PodPort: 82}}}},
		{"limits", `{"runtimeConfig": {"bandwidth": {"ingressRate": 1000000, "ingressBurst": 80000, "egressRate": 8, "egressBurst": 34359738351}}}`,
			netconf.Extras{Limits: netconf.Limits{Ingress: netconf.Limit{Rate: 1e6, Burst: 80000}, Egress: netconf.Limit{Rate: 8, Burst: 34359738351}}}},
		{"a limit one way", `{"runtimeConfig": {"bandwidth": {"egressRate": 1000, "egressBurst": 1000, "ingressRate": 0}}}`,
			netconf.Extras{Limits: netconf.Limits{Egress: netconf.Limit{Rate: 1000, Burst: 1000}}}},
		{"limits of the network come first", `{"ingressRate": 64, "ingressBurst": 64, "runtimeConfig": {"bandwidth": {"egressRate": 1000, "egressBurst": 1000}}}`,
			netconf.Extras{Limits: netconf.Limits{Ingress: netconf.Limit{Rate: 64, Burst: 64}}}},
		{"the portmap plugin's default", `{"snat": true}`, netconf.Extras{}},
		{"another plugin's options", `{"type": "ptp", "masqAll": true, "ingressRate": 7, "ipam": {"type": "enipool"}, "runtimeConfig": {"portMappings": [], "bandwidth": {}}}`, netconf.Extras{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParsePlugin([]byte(tt.stdin))
			if diff := cmp.Diff(tt.want, got.Extras, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestEveryWrongPortAndLimitIsNamedWithItsValue(t *testing.T) {
	ports := func(list string) string { return `{"runtimeConfig": {"portMappings": ` + list + `}}` }
	limits := func(object string) string { return `{"runtimeConfig": {"bandwidth": ` + object + `}}` }
	const m = "runtimeConfig.portMappings"
	for stdin, want := range map[string][]string{
		ports(`7`):    {m + `: 7: must be a list of {hostPort, containerPort, protocol, hostIP}`},
		ports(`[80]`): {m + `: [80]: must be a list`},
		ports(`[{"hostPort": 0, "containerPort": 65536, "protocol": "icmp", "hostIP": "here"}, {"hostPort": -1, "containerPort": "80"}]`): {
			m + `[0].hostPort: 0: must be a port from 1 to 65535`, m + `[0].containerPort: 65536: must be a port from 1 to 65535`,
			m + `[0].protocol: "icmp": must be tcp, udp or sctp`, m + `[0].hostIP: "here": must be an IPv4 or IPv6 address`,
			m + `[1].hostPort: -1: must be`, m + `[1].containerPort: "80": must be`, m + `[1].protocol: absent: must be`},
		ports(`[{"hostPort": 80, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 80, "containerPort": 81, "protocol": "tcp"}]`): {
			m + `[1].hostPort: 80: must be another port than that of an entry before, which leads to containerPort 80`},
		ports(`[{"hostPort": 80, "containerPort": 80, "protocol": "tcp", "hostIP": "0.0.0.0"}, {"hostPort": 80, "containerPort": 81, "protocol": "tcp", "hostIP": "::"},
			{"hostPort": 80, "containerPort": 80, "protocol": "tcp"}]`): {m + `[2].hostPort: 80: must be another port than that of an entry before, which leads to containerPort 81`},
		ports(`[{"hostPort": 80, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 80, "containerPort": 81, "protocol": "tcp", "hostIP": "0.0.0.0"}]`): {
			m + `[1].hostPort: 80: must be another port than that of an entry before, which leads to containerPort 80`},
		ports(`[{"hostPort": 80, "containerPort": 80, "protocol": "tcp", "hostIP": "fe80::1%eth0"}]`): {m + `[0].hostIP: "fe80::1%eth0": must be`},
		limits(`[]`): {`runtimeConfig.bandwidth: []: must be an object`},
		limits(`{"ingressRate": 1000, "egressBurst": 1000}`): {`runtimeConfig.bandwidth.ingressBurst: absent: must be set where ingressRate is`,
			`runtimeConfig.bandwidth.egressRate: absent: must be set where egressBurst is`},
		limits(`{"ingressRate": -1, "ingressBurst": 8, "egressRate": 1000, "egressBurst": 34359738360}`): {
			`runtimeConfig.bandwidth.ingressRate: -1: must be 0 for no limit, or at least 8 bits per second`,
			`runtimeConfig.bandwidth.egressBurst: 34359738360: must be 0 for no limit, or from 8 to 34359738359 bits`},
		`{"egressRate": "fast"}`:   {`egressRate: "fast": must be 0`},
		`{"masqAll": true}`:        {`masqAll: true: must be absent: enipool has no such option`},
		`{"conditionsV4": ["-d"]}`: {`conditionsV4: ["-d"]: must be absent`},
		`{"snat": false}`:          {`snat: false: must be true or absent`},
		`{"type": "ptp", "ipam": {"type": "enipool"}, "runtimeConfig": {"portMappings": [{}], "bandwidth": {"ingressRate": 1}}}`: {
			m + `: [{}]: must be absent: enipool does it for links of its own only`, `runtimeConfig.bandwidth: {"ingressRate": 1}: must be absent`},
	} {
		p, err := ParsePlugin([]byte(stdin))
		if err == nil {
			t.Errorf("%s: no error", stdin)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(want) {
			t.Errorf("%s: %d errors, want %d:\n%s", stdin, len(lines), len(want), err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error lacks %q:\n%s", stdin, w, err)
			}
		}
		if !p.Extras.IsZero() {
			t.Errorf("%s: half of it was taken: %v", stdin, p.Extras)
		}
	}
}

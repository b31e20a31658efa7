package node

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// A rule of others before ours cuts pods off or sends them out by another ENI, while
// each of our own objects is as it should be: only the kernel's answer tells.
func TestARuleOfOthersThatDivertsPodsIsToldWithWhatItDoes(t *testing.T) {
	n, _ := withPod(t)
	for _, tt := range []struct {
		name, rule, route, want string
	}{
		{"blackhole", "priority 600 from 10.0.0.0/24 lookup 777", "blackhole default table 777",
			"must fix: a rule that is not enipool's comes before enipool's, priority 600 from 10.0.0.0/24 lookup 777: what pods of the ENI eth1 send ends there (blackhole default); remove it (ip rule del priority 600 from 10.0.0.0/24 lookup 777)"},
		{"inside only", "priority 600 from 10.0.0.0/24 to 10.0.0.0/8 lookup 777", "unreachable default table 777",
			"what pods of the ENI eth1 send into the VPC ends there (unreachable default)"},
		{"the rule itself ends it", "priority 600 from 10.0.0.0/24 prohibit", "",
			"priority 600 from 10.0.0.0/24 prohibit: what pods of the ENI eth1 send ends there; remove it (ip rule del priority 600 from 10.0.0.0/24 prohibit)"},
		{"another ENI", "priority 600 from 10.0.0.16/28 lookup 777", "default via 10.0.0.1 dev eth0 onlink table 777",
			"what pods of the ENI eth1 send into the VPC leaves by its route default via 10.0.0.1 dev eth0; remove it (ip rule del priority 600 from 10.0.0.16/28 lookup 777)"},
		{"what is sent to pods", "priority 400 to 10.0.0.16/28 lookup 777", "default via 10.0.0.1 dev eth1 onlink table 777",
			"priority 400 from all to 10.0.0.16/28 lookup 777: what is sent to pods of the ENI eth1 leaves by its route default via 10.0.0.1 dev eth1"},
		{"the ENI itself", "priority 600 from 10.0.0.16/28 to 10.0.0.0/16 lookup 777", "default via 10.0.0.1 dev eth1 onlink table 777", ""},
		{"the main table, for what gets the node's address", "priority 2000 from 10.0.0.16/28 lookup main", "", ""},
		{"other packets", "priority 600 from 10.9.0.0/16 lookup 777", "blackhole default table 777", ""},
		{"other marks", "priority 600 fwmark 0x20000/0xff0000 lookup 777", "blackhole default table 777", ""},
		{"a table that has nothing for pods", "priority 99 from all lookup 777", "throw 10.0.0.0/8 table 777", ""},
		{"behind ours", "priority 5270 from all lookup 777", "blackhole 10.0.0.0/16 table 777", ""},
		{"a port", "priority 600 from all ipproto tcp dport 53 lookup 777", "blackhole default table 777", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nettest.Run(t, "sh", "-c", "ip link set eth0 up; ip rule add "+tt.rule)
			defer nettest.Run(t, "sh", "-c", "ip rule del "+tt.rule+"; ip route flush table 777; true")
			if tt.route != "" {
				nettest.Run(t, "sh", "-c", "ip route add "+tt.route)
			}
			lines, err := n.Check(t.Context())
			check := strings.Join(lines, "\n")
			if err != nil || tt.want == "" && len(lines) > 0 {
				t.Errorf("%v\n%s", err, check)
			}
			if !strings.Contains(check, tt.want) {
				t.Errorf("check lacks %q:\n%s", tt.want, check)
			}
		})
	}
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("without such a rule: %q, %v", lines, err)
	}
}

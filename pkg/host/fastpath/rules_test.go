package fastpath

import (
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// What rules do, in the words of the tests below.
var (
	allAccept  = netconf.OthersRule{Does: netconf.Accepts}
	someAccept = netconf.OthersRule{Match: netconf.MatchesSome, Does: netconf.Accepts}
	allAct     = netconf.OthersRule{Does: netconf.Acts}
	someAct    = netconf.OthersRule{Match: netconf.MatchesSome, Does: netconf.Acts}
	never      = netconf.OthersRule{Match: netconf.MatchesNone}
)

// onlyRule reads the one rule of the one base chain that there is.
func onlyRule(t *testing.T) netconf.OthersRule {
	t.Helper()
	list, err := readChains()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if len(c.Rules) > 0 {
			return c.Rules[0]
		}
	}
	t.Fatalf("read %+v", list)
	return netconf.OthersRule{}
}

// Rules are read as the kernel has them.
func TestRulesOfOthersAreRead(t *testing.T) {
	nettest.Need(t)
	nettest.Run(t, "nft", "add table ip t; add chain ip t sub; add set ip t s { type ipv4_addr; flags dynamic; }; add counter ip t n; add quota ip t q { 1 mbytes };"+
		"add map ip t m { type ipv4_addr : verdict; }; add chain ip t c { type filter hook forward priority 0; policy drop; }")
	t.Cleanup(func() { nettest.Run(t, "nft", "delete table ip t") })
	for _, tt := range []struct {
		rule string
		want netconf.OthersRule
	}{
		{"counter", netconf.OthersRule{}},
		{"counter name n", netconf.OthersRule{}},
		{"accept", allAccept},
		{"drop", allAct},
		{"ct state new drop", never},
		{"ct state new,invalid drop", never},
		{"ct state established,related accept", allAccept},
		{"ct state != established drop", never},
		{"ct state vmap { established : accept, invalid : drop }", allAct},
		{"ct state established ip saddr 192.0.2.1 accept", someAccept},
		{"ct mark 7 drop", someAct},
		{"tcp dport { 80, 443 } jump sub", netconf.OthersRule{Match: netconf.MatchesSome, Does: netconf.Jumps, Target: "sub"}},
		{"goto sub", netconf.OthersRule{Does: netconf.Goes, Target: "sub"}},
		{"return", netconf.OthersRule{Does: netconf.Returns}},
		{"ct state new log drop", never},
		// These compare.
		{"rt classid 7 accept", someAccept},
		{"ip saddr @s accept", someAccept},
		{"ip saddr 192.0.2.1-192.0.2.9 accept", someAccept},
		{"ip saddr != 192.0.2.1-192.0.2.9 accept", someAccept},
		{"fib daddr type local accept", someAccept},
		{"tcp option maxseg exists accept", someAccept},
		{"tcp option maxseg size 1-500 accept", someAccept},
		{"ct status dnat accept", someAccept},
		{"ct expiration 1s-10s accept", someAccept},
		{"meta priority 1:2 accept", someAccept},
		{"socket transparent 1 accept", someAccept},
		{"ipsec in reqid 1 accept", someAccept},
		{"osf name \"Linux\" accept", someAccept},
		{"ct state established symhash mod 2 0 accept", someAccept},
		{"ct state established jhash ip saddr mod 2 0 accept", someAccept},
		// What these compare is not the state that was loaded before.
		{"ct state established symhash mod 2 0 drop", someAct},
		{"ct state established jhash ip saddr mod 2 0 drop", someAct},
		{"ct state established ct mark 2 drop", someAct},
		// These do something, or go by what came before.
		{"log accept", allAct},
		{"log ct state new accept", allAct},
		{"meta mark set 7", allAct},
		{"meta nftrace set 1", allAct},
		{"ct mark set 7", allAct},
		{"ip dscp set cs1", someAct},
		{"tcp option maxseg size set 1000", allAct},
		{"reset tcp option sack-perm", allAct},
		{"ip saddr vmap @m", someAct},
		{"limit rate 1/second accept", allAct},
		{"quota over 1 mbytes accept", allAct},
		{"quota name q accept", allAct},
		{"ct count over 5 accept", allAct},
		{"ct bytes > 1000 accept", allAct},
		{"ct packets > 1000 accept", allAct},
		{"ct avgpkt > 1000 accept", allAct},
		{"last accept", allAct},
		{"ct state established numgen inc mod 2 0 accept", allAct},
		{"ct state established numgen random mod 2 0 accept", allAct},
		{"add @s { ip saddr }", someAct},
		{"dup to 192.0.2.1", allAct},
		{"queue num 1", allAct},
		{"reject", allAct},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			if out, err := exec.Command("nft", "flush chain ip t c; add rule ip t c "+tt.rule).CombinedOutput(); err != nil {
				t.Skipf("this machine has no such rule: %v: %s", err, out)
			}
			if got := onlyRule(t); got != tt.want {
				t.Errorf("read %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Rules of iptables that let packets pass are in nobody's way, unless their matches
// or targets do something or go by what came before.
func TestRulesOfIptablesAreRead(t *testing.T) {
	nettest.Need(t)
	t.Cleanup(func() { nettest.Run(t, "nft", "flush ruleset") })
	for _, tt := range []struct {
		table, rule string
		want        netconf.OthersRule
	}{
		{"filter", "-m comment --comment web -j ACCEPT", allAccept},
		{"filter", "-m conntrack --ctstate NEW -m recent --set -j ACCEPT", never},
		{"filter", "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", allAccept},
		{"filter", "-m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP", never},
		{"filter", "-m conntrack --ctstate ESTABLISHED --ctproto tcp -j ACCEPT", someAccept},
		{"filter", "-m state --state NEW -j DROP", never},
		{"filter", "-p tcp -m multiport --dports 80,443 -j ACCEPT", someAccept},
		{"filter", "-p tcp -m tcp --dport 80 -j ACCEPT", someAccept},
		{"filter", "-m addrtype --dst-type LOCAL -j ACCEPT", someAccept},
		{"filter", "-m mark --mark 1 -j ACCEPT", someAccept},
		{"filter", "-m connmark --mark 1 -j ACCEPT", someAccept},
		{"filter", "-m mac --mac-source 00:00:00:00:00:01 -j ACCEPT", someAccept},
		{"filter", "-m iprange --src-range 192.0.2.1-192.0.2.9 -j ACCEPT", someAccept},
		{"filter", "-m physdev --physdev-is-bridged -j ACCEPT", someAccept},
		{"filter", "-m string --string x --algo bm -j ACCEPT", someAccept},
		{"filter", "-m u32 --u32 6&0xFF=1 -j ACCEPT", someAccept},
		{"filter", "-m recent --set -j ACCEPT", allAct},
		{"filter", "-m recent --rcheck --name x", allAct},
		{"filter", "-m hashlimit --hashlimit-above 5/sec --hashlimit-name h -j ACCEPT", allAct},
		{"filter", "-m limit --limit 5/sec -j ACCEPT", allAct},
		{"filter", "-m quota --quota 1000 -j ACCEPT", allAct},
		{"filter", "-m statistic --mode nth --every 3 --packet 0 -j ACCEPT", allAct},
		{"filter", "-m statistic --mode random --probability 0.5 -j ACCEPT", allAct},
		{"filter", "-m connbytes --connbytes 1000: --connbytes-dir both --connbytes-mode bytes -j ACCEPT", allAct},
		{"filter", "-p tcp -m connlimit --connlimit-above 5 -j ACCEPT", someAct},
		{"filter", "-m connlabel --label 1 --set -j ACCEPT", allAct},
		{"filter", "-p tcp -m osf --genre Linux --log 1 -j ACCEPT", someAct},
		{"filter", "-j LOG", allAct},
		{"filter", "-j NFLOG", allAct},
		{"filter", "-j NFQUEUE", allAct},
		{"filter", "-p tcp -j REJECT", someAct},
		{"filter", "-j AUDIT --type accept", allAct},
		{"filter", "-j CONNMARK --set-mark 1", allAct},
		{"filter", "-j RATEEST --rateest-name r --rateest-interval 250ms --rateest-ewmalog 500ms", allAct},
		{"mangle", "-j MARK --set-mark 1", allAct},
		{"mangle", "-j CLASSIFY --set-class 1:1", allAct},
		{"mangle", "-j DSCP --set-dscp 1", allAct},
		{"mangle", "-j TEE --gateway 192.0.2.1", allAct},
		{"mangle", "-j TTL --ttl-set 9", allAct},
		{"mangle", "-p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu", someAct},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			nettest.Run(t, "nft", "flush ruleset")
			if out, err := exec.Command("iptables-nft", append([]string{"-t", tt.table, "-A", "FORWARD"}, strings.Fields(tt.rule)...)...).CombinedOutput(); err != nil {
				t.Skipf("this machine has no such rule: %v: %s", err, out)
			}
			if got := onlyRule(t); got != tt.want {
				t.Errorf("read %+v, want %+v", got, tt.want)
			}
		})
	}
}

// All matches that there are in <linux/netfilter/xt_*.h> and netfilter_ipv4, and what
// is not known there: what remembers, counts, logs or sets something acts.
func TestMatchesOfIptablesThatLeaveATraceAct(t *testing.T) {
	blank := make([]byte, 512)
	set := func(at int) []byte {
		info := make([]byte, 48)
		info[at] = 1
		return info
	}
	for _, tt := range []struct {
		names    string
		revision uint32
		info     []byte
		want     netconf.OthersRule
	}{
		{"addrtype cgroup cluster connmark cpu dccp devgroup dscp ecn esp helper ipcomp iprange ipvs l2tp length mac mark multiport owner physdev " +
			"pkttype policy realm rpfilter sctp state string tcpmss time u32 tcp udp udplite ah ttl icmp tos", 0, blank, netconf.OthersRule{Match: netconf.MatchesSome}},
		{"comment", 0, blank, netconf.OthersRule{}},
		{"bpf connbytes connlabel connlimit hashlimit limit nfacct osf quota rateest recent socket statistic", 0, blank, allAct},
		{"something-new", 0, blank, allAct},
		{"set", 1, set(0), netconf.OthersRule{Match: netconf.MatchesSome}},
		{"set", 2, set(0), netconf.OthersRule{Match: netconf.MatchesSome}},
		{"set", 3, set(0), netconf.OthersRule{Match: netconf.MatchesSome}},
		{"set", 3, set(8), allAct},
		{"set", 3, set(24), allAct},
		{"set", 4, set(0), netconf.OthersRule{Match: netconf.MatchesSome}},
		{"set", 4, set(16), allAct},
		{"set", 4, set(32), allAct},
		{"set", 4, blank[:20], allAct},
		{"set", 5, blank, allAct},
	} {
		for name := range strings.FieldsSeq(tt.names) {
			var r ruleReader
			var f attributes
			f[unix.NFTA_MATCH_NAME], f[unix.NFTA_MATCH_INFO] = append([]byte(name), 0), tt.info
			f[unix.NFTA_MATCH_REV] = binary.BigEndian.AppendUint32(nil, tt.revision)
			if r.match(f); r.rule != tt.want {
				t.Errorf("%s, revision %d: read %+v, want %+v", name, tt.revision, r.rule, tt.want)
			}
		}
	}
}

// All targets of iptables act, and so do expressions of nftables that nobody knows yet.
func TestWhatIsNotKnownActs(t *testing.T) {
	for _, name := range []string{"target", "notrack", "flow_offload", "secmark", "synproxy", "tproxy", "fwd", "dup", "queue", "redir", "masq", "nat", "dynset",
		"objref", "connlimit", "last", "limit", "quota", "numgen", "log", "reject", "something-new", ""} {
		var r ruleReader
		if err := r.readExpression(append(textAttribute(unix.NFTA_EXPR_NAME, name), textAttribute(unix.NFTA_EXPR_DATA, "")...)); err != nil || r.rule != allAct {
			t.Errorf("%q: read %+v, %v; want %+v", name, r.rule, err, allAct)
		}
	}
}

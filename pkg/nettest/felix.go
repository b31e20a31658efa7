package nettest

import (
	"fmt"
	"strings"
)

// FelixIptables returns a command for what Calico's Felix keeps at hook forward beside
// kube-proxy, as iptables-save shows it, where pods' links begin with eni: chains that lead
// each link that it knows to the chain of its policies, and drop what comes by any other.
func FelixIptables(links ...string) string {
	chains := []string{"KUBE-FORWARD", "cali-FORWARD", "cali-from-hep-forward", "cali-to-hep-forward", "cali-cidr-block", "cali-from-wl-dispatch", "cali-to-wl-dispatch", "cali-pri-kns.default"}
	var rules strings.Builder
	rules.WriteString(felixForward)
	for _, way := range []struct{ to, option, chain string }{{"cali-from-wl-dispatch", "-i", "cali-fw-"}, {"cali-to-wl-dispatch", "-o", "cali-tw-"}} {
		for _, link := range links {
			pod := way.chain + link
			chains = append(chains, pod)
			fmt.Fprintf(&rules, "-A %s %s %s -m comment --comment \"cali:1\" -g %s\n", way.to, way.option, link, pod)
			fmt.Fprint(&rules, strings.ReplaceAll(felixPolicies, "POD", pod))
		}
		fmt.Fprintf(&rules, "-A %s -m comment --comment \"cali:3\" -m comment --comment \"Unknown interface\" -j DROP\n", way.to)
	}
	return "iptables-nft-restore --noflush <<X\n*filter\n:" + strings.Join(chains, " - [0:0]\n:") + " - [0:0]\n" + rules.String() + "COMMIT\nX"
}

const felixForward = `-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT
-A FORWARD -m comment --comment "cali:mp77cMpurHhyjLrM" -j MARK --set-xmark 0x10000/0x10000
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-FORWARD -m comment --comment "cali:vjrMJCRpqwy5oRoX" -j MARK --set-xmark 0x0/0xe0000
-A cali-FORWARD -m comment --comment "cali:A_sPAO0mcxbT9mOV" -m mark --mark 0x0/0x10000 -j cali-from-hep-forward
-A cali-FORWARD -i eni+ -m comment --comment "cali:8ZoYfO5HKXWbB3pk" -j cali-from-wl-dispatch
-A cali-FORWARD -o eni+ -m comment --comment "cali:jdEuaPBe14V2hutn" -j cali-to-wl-dispatch
-A cali-FORWARD -m comment --comment "cali:12bc6HljsMKsmfr-" -j cali-to-hep-forward
-A cali-FORWARD -m comment --comment "cali:NOSxoaGx8OIstr1z" -j cali-cidr-block
-A cali-pri-kns.default -j MARK --set-xmark 0x10000/0x10000
-A cali-pri-kns.default -m mark --mark 0x10000/0x10000 -j RETURN
`

const felixPolicies = `-A POD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A POD -m conntrack --ctstate INVALID -j DROP
-A POD -j MARK --set-xmark 0x0/0x10000
-A POD -j cali-pri-kns.default
-A POD -m mark --mark 0x10000/0x10000 -j RETURN
-A POD -j DROP
`

// FelixNft is FelixIptables for Felix's own nftables: maps lead the links that it knows.
func FelixNft(links ...string) string {
	var elements string
	for _, link := range links {
		elements += fmt.Sprintf(`"%s" : goto filter-cali-wl, `, link)
	}
	if elements != "" {
		elements = "elements = { " + elements + "}"
	}
	return fmt.Sprintf(`nft -f - <<X
table ip calico {
  map filter-cali-fw-dispatch { type ifname : verdict; %[1]s
  }
  map filter-cali-tw-dispatch { type ifname : verdict; %[1]s
  }
  chain filter-cali-wl { ct state established,related accept; ct state invalid drop; meta mark set meta mark & 0xfffeffff; meta mark set meta mark | 0x10000; meta mark & 0x10000 == 0x10000 return; drop; }
  chain filter-cali-from-wl-dispatch { iifname vmap @filter-cali-fw-dispatch; drop; }
  chain filter-cali-to-wl-dispatch { oifname vmap @filter-cali-tw-dispatch; drop; }
  chain filter-cali-FORWARD { meta mark set meta mark & 0xfff1ffff; iifname "eni*" jump filter-cali-from-wl-dispatch; oifname "eni*" jump filter-cali-to-wl-dispatch; }
  chain filter-FORWARD { type filter hook forward priority filter; jump filter-cali-FORWARD; meta mark & 0x10000 == 0x10000 accept; }
}
X`, elements)
}

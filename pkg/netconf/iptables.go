package netconf

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/digest"
	"github.com/enipool/enipool/pkg/eni"
)

// The prefixes that begin the names of our iptables chains. The release before this
// one takes every ENIPOOL- chain for its own: it removes those it does not know, and
// fails where one is jumped to from INPUT or OUTPUT. So all that it does not know has
// the other prefix, and stays in place on a node that is downgraded.
const (
	IptChainPrefix = "ENIPOOL-"
	IptPodsPrefix  = "ENIPODS-"
)

// IptPrefixes returns the prefixes by which our iptables chains are known. ENIREPLY- is
// left of builds between releases.
func IptPrefixes() []string { return []string{IptChainPrefix, IptPodsPrefix, "ENIREPLY-"} }

const iptSNAT = IptChainPrefix + "SNAT" // and a hash

// IptInside returns those of a chain's rules that tell what is inside the VPC; ok is false
// for a chain that does not decide on that.
func IptInside(chain string, rules []string) (inside []string, ok bool) {
	if !strings.HasPrefix(chain, iptSNAT+"-") {
		return nil, false
	}
	for _, r := range rules {
		if strings.HasSuffix(r, "-j RETURN") {
			inside = append(inside, r)
		}
	}
	return inside, true
}

// IsIptChain tells whether a chain of this name is ours.
func IsIptChain(name string) bool {
	return slices.ContainsFunc(IptPrefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// IptChain is a chain of iptables or ip6tables and the one jump to it. Its name
// carries a hash of its rules, so a chain with this name never needs a change.
type IptChain struct {
	Table, Parent string
	First         bool // the jump stands before all others, not behind them
	Fixed         bool // the name has no hash and others of ours lead to it: its rules are replaced
	Name          string
	Rules         []string // as `iptables -S` prints them, without "-A NAME "
}

// Iptables returns the chains of the family. They hold nothing per pod.
func (f Firewall) Iptables(family eni.Family) []IptChain {
	if family == eni.IPv6 && !f.DropSpoofed6 {
		return nil
	}
	var chains []IptChain
	add := func(table, parent, name string, rules []string) {
		if len(rules) == 0 {
			return
		}
		// Others end mangle and raw early for connections they know, so ours
		// come first there. In nat the rules of others may be more special.
		chains = append(chains, IptChain{Table: table, Parent: parent, First: table != "nat",
			Name: name + "-" + shortHash(strings.Join(rules, "\n")), Rules: rules})
	}
	// Replies first: connections that get their mark from the other chain need it.
	add("mangle", "PREROUTING", IptPodsPrefix+"REPLY", f.iptReplies(true))
	add("mangle", "OUTPUT", IptPodsPrefix+"SOCKET", f.iptReplies(false))
	add("mangle", "PREROUTING", IptChainPrefix+"MARK", f.iptArrivals())
	if family == eni.IPv4 {
		add("nat", "POSTROUTING", iptSNAT, f.iptSNAT())
	}
	if f.dropsSpoofed(family) {
		add("raw", "PREROUTING", IptChainPrefix+"SPOOF", f.iptSpoof())
	}
	if f.primaryAddr(family).IsValid() {
		chains = append(chains, IptPorts(family, f.Ports, f.primaryAddr(family))...)
	}
	f.addPortChains(family, add)
	return chains
}

func (f Firewall) iptArrivals() []string {
	if !f.needsMarks() {
		return nil
	}
	var rules []string
	for _, e := range f.ENIs {
		mark := fmt.Sprintf("-j CONNMARK --set-xmark %#x/%#x", Mark(e.Index, f.Mask), f.Mask)
		rules = append(rules, fmt.Sprintf("-i %s -m conntrack --ctstate NEW %s", e.Device, mark),
			// of connections that began without these rules, see addMarks
			fmt.Sprintf("-i %s -m conntrack --ctdir ORIGINAL -m connmark --mark 0x0/%#x %s", e.Device, f.Mask, mark))
	}
	return rules
}

// iptReplies marks replies with the ENI that their connection came in by. Of what
// is forwarded it first clears a mark that would choose an ENI, see addMarks. What
// a socket of the node marks itself is the socket's own choice.
func (f Firewall) iptReplies(forwarded bool) []string {
	if !f.needsMarks() {
		return nil
	}
	var rules []string
	reply := "-m conntrack --ctstate ESTABLISHED --ctdir REPLY" // for the reason see addReplies
	if forwarded {
		reply = "-m conntrack --ctdir REPLY"
		for _, e := range f.ENIs {
			rules = append(rules, fmt.Sprintf("-m mark --mark %#x/%#[2]x -j MARK --set-xmark 0x0/%#[2]x", Mark(e.Index, f.Mask), f.Mask))
		}
	}
	for _, old := range f.OldMasks {
		for _, e := range f.ENIs {
			rules = append(rules, fmt.Sprintf("%s -m connmark --mark %#x/%#x -j MARK --set-xmark %#x/%#x",
				reply, Mark(e.Index, old), old, Mark(e.Index, f.Mask), f.Mask))
		}
	}
	return append(rules, fmt.Sprintf("%[2]s -m connmark ! --mark 0x0/%#[1]x -j CONNMARK --restore-mark --nfmask %#[1]x --ctmask %#[1]x", f.Mask, reply))
}

func (f Firewall) iptSNAT() []string {
	if !f.SNAT.IsValid() {
		return nil
	}
	rules := []string{fmt.Sprintf("! -o %s -j RETURN", f.OutDevice), fmt.Sprintf("-s %s/32 -j RETURN", f.SNAT)}
	for _, cidr := range f.VPC {
		rules = append(rules, strings.TrimSpace(iptPrefix("-d", cidr)+" -j RETURN"))
	}
	for _, subnet := range f.Subnets {
		rules = append(rules, strings.TrimSpace(iptPrefix("-s", subnet)+fmt.Sprintf(" -j SNAT --to-source %s --random-fully", f.SNAT)))
	}
	return rules
}

// iptPrefix leaves a match on everything out, as iptables does.
func iptPrefix(flag string, p netip.Prefix) string {
	if p.Bits() == 0 {
		return ""
	}
	return flag + " " + p.String()
}

func (f Firewall) iptSpoof() []string {
	var rules []string
	for _, e := range f.enisNamedLikePods() {
		rules = append(rules, fmt.Sprintf("-i %s -j RETURN", e.Device))
	}
	return append(rules, fmt.Sprintf("-i %s+ -m rpfilter --invert -j DROP", VethPrefix))
}

// Lines returns the chain and its jump in the words of `iptables -S`.
func (c IptChain) Lines() []string {
	lines := []string{"-N " + c.Name}
	if !c.Fixed {
		lines = append(lines, "-A "+c.Parent+" -j "+c.Name)
	}
	for _, r := range c.Rules {
		lines = append(lines, "-A "+c.Name+" "+r)
	}
	return lines
}

func shortHash(text string) string {
	sum := digest.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

package netconf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// IptChainPrefix begins the name of every iptables chain of ours.
const IptChainPrefix = "ENIPOOL-"

// IptChain is a chain of iptables or ip6tables and the one jump to it. Its name
// carries a hash of its rules, so a chain with this name never needs a change.
type IptChain struct {
	Table, Parent string
	First         bool // the jump stands before all others, not behind them
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
			Name: IptChainPrefix + name + "-" + shortHash(strings.Join(rules, "\n")), Rules: rules})
	}
	add("mangle", "PREROUTING", "MARK", f.iptMarks())
	if family == eni.IPv4 {
		add("nat", "POSTROUTING", "SNAT", f.iptSNAT())
	}
	if family == eni.IPv6 || f.DropSpoofed4 {
		add("raw", "PREROUTING", "SPOOF", f.iptSpoof())
	}
	return chains
}

func (f Firewall) iptMarks() []string {
	if !f.marks() {
		return nil
	}
	var rules []string
	for _, e := range f.ENIs {
		rules = append(rules, fmt.Sprintf("-i %s -m conntrack --ctstate NEW -j CONNMARK --set-xmark %#x/%#x",
			e.Device, Mark(e.Index, f.Mask), f.Mask))
	}
	return append(rules, fmt.Sprintf("-m conntrack --ctdir REPLY -m connmark ! --mark 0x0/%#[1]x -j CONNMARK --restore-mark --nfmask %#[1]x --ctmask %#[1]x", f.Mask))
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
	for _, e := range f.uplinks() {
		rules = append(rules, fmt.Sprintf("-i %s -j RETURN", e.Device))
	}
	return append(rules, fmt.Sprintf("-i %s+ -m rpfilter --invert -j DROP", VethPrefix))
}

// Lines returns the chain and its jump in the words of `iptables -S`.
func (c IptChain) Lines() []string {
	lines := []string{"-N " + c.Name, "-A " + c.Parent + " -j " + c.Name}
	for _, r := range c.Rules {
		lines = append(lines, "-A "+c.Name+" "+r)
	}
	return lines
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

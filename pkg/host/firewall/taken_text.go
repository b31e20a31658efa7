package firewall

import (
	"slices"
	"strconv"
	"strings"
)

// textNatRules are those of a table of legacy iptables, by chain.
type textNatRules map[string][]natRule

func newTextNatRules(lines []string) textNatRules {
	t := textNatRules{}
	for _, line := range lines {
		if rest, isRule := strings.CutPrefix(line, "-A "); isRule {
			chain, rule, _ := strings.Cut(rest, " ")
			t[chain] = append(t[chain], textNatRule{rule, numberOf(rule)})
		}
	}
	return t
}

func (t textNatRules) list(chain string) ([]natRule, error) { return t[chain], nil }

// textNatRule is a rule in the words of `iptables -S`, without its chain.
type textNatRule struct {
	words string
	port  uint16
}

func (r textNatRule) number() uint16 { return r.port }

func (r textNatRule) target() string { return optionValue(splitQuoted(r.words), "-j") }

// numberOf returns the single port that a rule is for, 0 where it is for a range of them, for all
// but one or for all.
func numberOf(rule string) uint16 {
	if !strings.Contains(rule, " --dport ") {
		return 0 // most rules need not be split
	}
	words := splitQuoted(rule) // in a comment the option is none
	at := slices.Index(words, "--dport")
	if at < 1 || at+1 == len(words) || words[at-1] == "!" {
		return 0
	}
	number, err := strconv.ParseUint(words[at+1], 10, 16)
	if err != nil {
		return 0
	}
	return uint16(number)
}

func (r textNatRule) judge(p portProbe) (natView, error) {
	v := natView{ruleView: ruleView{match: matches}, byPort: r.port != 0}
	words := splitQuoted(r.words)
	for len(words) > 0 {
		inverted := words[0] == "!"
		if inverted {
			words = words[1:]
		}
		if len(words) < 2 {
			v.match = v.match.and(mayMatch)
			break
		}
		option, value := words[0], words[1]
		words = words[2:]
		switch option {
		case "-m", "--comment":
			continue
		case "-j", "-g":
			v.setNatTarget(value, option == "-g", words)
			return v, nil
		}
		m := p.textMatch(option, value)
		if inverted {
			m = m.not()
		}
		v.match = v.match.and(m)
	}
	return v, nil
}

func (p portProbe) textMatch(option, value string) match {
	switch option {
	case "-i":
		return Flow{}.judgeLink(p.in, value)
	case "-d":
		return judgePrefix(p.to, value)
	case "-p":
		return matchIf(value == p.transport.String() || value == "all")
	case "--dst-type":
		return matchIf(slices.Contains(strings.Split(value, ","), "LOCAL"))
	case "--ctstate", "--state":
		return matchIf(slices.Contains(strings.Split(value, ","), "NEW"))
	case "--dport":
		return p.isInRange(value)
	}
	return mayMatch
}

// isInRange judges a port, or a range of them as 8000:8010.
func (p portProbe) isInRange(value string) match {
	first, last, isRange := strings.Cut(value, ":")
	if !isRange {
		last = first
	}
	low, err := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	if err != nil || err2 != nil {
		return mayMatch
	}
	return matchIf(low <= int(p.port) && int(p.port) <= high)
}

func (v *natView) setNatTarget(name string, isGoto bool, options []string) {
	switch name {
	case "DNAT", "REDIRECT":
		v.translates, v.to = true, "another address"
		if name == "REDIRECT" {
			v.to = "another port of the node"
		}
		if len(options) > 1 {
			v.to = options[1]
		}
	default:
		v.setTarget(name, isGoto, options)
	}
}

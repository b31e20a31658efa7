package firewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// textRules shows the rules of a table of legacy iptables, in the words of
// `iptables -S`.
type textRules struct {
	list func(chain string) ([]string, error)
}

func (t textRules) policyDrops(chain string) (bool, error) {
	lines, err := t.list(chain)
	return slices.Contains(lines, "-P "+chain+" DROP"), err
}

func (t textRules) each(chain string, w *walk, visit func(ruleView) (bool, error)) error {
	lines, err := t.list(chain)
	if err != nil {
		return fmt.Errorf("list chain %s of iptables: %w", chain, err)
	}
	for _, line := range lines {
		rule, isRule := strings.CutPrefix(line, "-A "+chain+" ")
		if !isRule {
			continue
		}
		if goOn, err := visit(w.textRule(splitQuoted(rule))); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// textRule judges a rule by its words.
func (w *walk) textRule(words []string) ruleView {
	r := ruleView{match: matches}
	for len(words) > 0 {
		inverted := words[0] == "!"
		if inverted {
			words = words[1:]
		}
		if len(words) < 2 {
			r.match = r.match.and(mayMatch)
			break
		}
		option, value := words[0], words[1]
		words = words[2:]
		m := matches
		switch option {
		case "-m", "--comment":
			continue
		case "-j", "-g":
			r.setTarget(value, option == "-g")
			return r // what follows belongs to the target
		default:
			m = w.textMatch(option, value)
		}
		if inverted {
			m = m.not()
		}
		r.match = r.match.and(m)
	}
	return r
}

func (w *walk) textMatch(option, value string) match {
	f := w.flow
	switch option {
	case "-i":
		return f.judgeLink(f.In, value)
	case "-o":
		return f.judgeLink(f.Out, value)
	case "-s":
		return judgePrefix(f.Src, value)
	case "-d":
		return judgePrefix(f.Dst, value)
	case "-p":
		return matchIf(value == "tcp" || value == "all")
	case "--ctstate", "--state":
		return matchIf(slices.Contains(strings.Split(value, ","), "NEW"))
	case "--sport", "--dport":
		if strings.Contains(value, ":") {
			return mayMatch
		}
		return matchIf(value == strconv.Itoa(flowPort))
	case "--mark":
		want, _, _ := strings.Cut(value, "/")
		if n, err := strconv.ParseUint(want, 0, 32); err == nil && !w.marked {
			return matchIf(n == 0)
		}
	}
	return mayMatch
}

func (r *ruleView) setTarget(name string, isGoto bool) {
	switch name {
	case "ACCEPT":
		r.action = accepts
	case "DROP", "REJECT":
		r.action = drops
	case "RETURN":
		r.action = returns
	case "MARK", "CONNMARK":
		r.marks = true
	case "NFQUEUE":
		r.action = decidesElsewhere
	case "LOG", "NFLOG", "TCPMSS", "TRACE", "CT", "CLASSIFY", "SET":
	default:
		r.action, r.chain = jumps, name
		if isGoto {
			r.action = goesTo
		}
	}
}

func (f Flow) judgeLink(link, pattern string) match {
	start, open := strings.CutSuffix(pattern, "+")
	switch {
	case link == "", f.mayGetRules(link, start):
		return mayMatch
	case open:
		return matchIf(strings.HasPrefix(link, start))
	}
	return matchIf(link == pattern)
}

func judgePrefix(a netip.Addr, text string) match {
	p, err := netip.ParsePrefix(text)
	if err != nil || !a.IsValid() {
		return mayMatch
	}
	return matchIf(p.Contains(a))
}

// splitQuoted splits at blanks, but not inside quotes.
func splitQuoted(line string) []string {
	var words []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if rest, quoted := strings.CutPrefix(line, `"`); quoted {
			word, after, _ := strings.Cut(rest, `"`)
			words, line = append(words, word), after
			continue
		}
		word, after, _ := strings.Cut(line, " ")
		words, line = append(words, word), after
	}
	return words
}

package firewall

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-iptables/iptables"
)

// textRules shows the rules of a table of legacy iptables, in the words of
// `iptables -S`. What was read once is kept: each list is a start of the program.
type textRules struct {
	list  func(chain string) ([]string, error)
	lines map[string][]string
}

func (t textRules) readChain(chain string) ([]string, error) {
	lines, read := t.lines[chain]
	if read {
		return lines, nil
	}
	lines, err := t.list(chain)
	if err != nil {
		return nil, fmt.Errorf("list chain %s of iptables: %w", chain, err)
	}
	t.lines[chain] = lines
	return lines, nil
}

func (t textRules) policyDrops(chain string) (bool, error) {
	lines, err := t.readChain(chain)
	return slices.Contains(lines, "-P "+chain+" DROP"), err
}

func (t textRules) each(chain string, w *walk, visit func(ruleView) (bool, error)) error {
	lines, err := t.readChain(chain)
	if none := (*iptables.Error)(nil); errors.As(err, &none) && none.IsNotExist() {
		// It is no chain but a target that this program does not know.
		_, err = visit(ruleView{match: mayMatch, action: decidesElsewhere})
		return err
	}
	if err != nil {
		return err
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
	r := ruleView{match: matches, mark: w.mark, conn: w.conn}
	module := ""
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
		case "-m":
			module = value
			continue
		case "--comment":
			continue
		case "-j", "-g":
			r.setTarget(value, option == "-g", words)
			return r
		default:
			m = w.textMatch(module, option, value)
		}
		if inverted {
			m = m.not()
		}
		r.match = r.match.and(m)
	}
	return r
}

func (w *walk) textMatch(module, option, value string) match {
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
		state := "NEW"
		if f.Reply {
			state = "ESTABLISHED"
		}
		return matchIf(slices.Contains(strings.Split(value, ","), state))
	case "--ctdir":
		return matchIf(f.Reply == (value == "REPLY"))
	case "--sport", "--dport":
		if strings.Contains(value, ":") {
			return mayMatch
		}
		return matchIf(value == strconv.Itoa(flowPort))
	case "--mark":
		have := w.mark
		if module == "connmark" {
			have = w.conn
		}
		if want, mask, ok := parseMark(value); ok {
			return have.judgeBits(want, mask)
		}
	}
	return mayMatch
}

// parseMark reads VALUE/MASK; without a mask all bits count.
func parseMark(text string) (value, mask uint32, ok bool) {
	first, second, masked := strings.Cut(text, "/")
	v, err := strconv.ParseUint(first, 0, 32)
	m := uint64(math.MaxUint32)
	if masked && err == nil {
		m, err = strconv.ParseUint(second, 0, 32)
	}
	return uint32(v), uint32(m), err == nil
}

// setTarget takes in what a rule does; options are those of its target.
func (r *ruleView) setTarget(name string, isGoto bool, options []string) {
	switch name {
	case "ACCEPT":
		r.action = accepts
	case "DROP", "REJECT":
		r.action = drops
	case "RETURN":
		r.action = returns
	case "MARK":
		value, mask, ok := parseMark(optionValue(options, "--set-xmark"))
		if r.mark = r.mark.and(^mask).xor(exactMark(value)); !ok {
			r.mark = mark{}
		}
	case "CONNMARK":
		r.mark, r.conn = textConnmark(options).applyTo(r.mark, r.conn)
	case "MASQUERADE":
		r.action, r.source = translates, source{given: true, masquerade: true}
	case "SNAT":
		to, err := netip.ParseAddr(optionValue(options, "--to-source"))
		if r.action, r.source = translates, (source{given: true, addr: to}); err != nil {
			r.source.addr = netip.Addr{} // several, or with a port
		}
	case "NFQUEUE", "NETMAP", "TPROXY", "SYNPROXY":
		r.action = decidesElsewhere
	case "LOG", "NFLOG", "TCPMSS", "TRACE", "CT", "CLASSIFY", "SET", "CHECKSUM", "DSCP", "TOS", "TTL", "HL", "ECN", "TEE":
	default:
		r.action, r.chain = jumps, name
		if isGoto {
			r.action = goesTo
		}
	}
}

// textConnmark reads the options of CONNMARK as `iptables -S` prints them.
func textConnmark(options []string) connmark {
	if value, mask, ok := parseMark(optionValue(options, "--set-xmark")); ok {
		return connmark{value: value, ctMask: mask}
	}
	_, nfMask, ok := parseMark("0/" + optionValue(options, "--nfmask"))
	_, ctMask, too := parseMark("0/" + optionValue(options, "--ctmask"))
	return connmark{save: slices.Contains(options, "--save-mark"), restore: slices.Contains(options, "--restore-mark"),
		unknown: !ok || !too, nfMask: nfMask, ctMask: ctMask}
}

// optionValue returns the value of an option, "" where it is not given.
func optionValue(options []string, name string) string {
	if at := slices.Index(options, name) + 1; at > 0 && at < len(options) {
		return options[at]
	}
	return ""
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

// splitQuoted splits at blanks, but not inside quotes. iptables puts a backslash before a quote or
// a backslash that is inside.
func splitQuoted(line string) []string {
	var words []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		var word string
		if rest, quoted := strings.CutPrefix(line, `"`); quoted {
			word, line = cutQuoted(rest)
		} else {
			word, line, _ = strings.Cut(line, " ")
		}
		words = append(words, word)
	}
	return words
}

// cutQuoted returns what stands before the quote that ends a word, and what stands behind it.
func cutQuoted(text string) (word, behind string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			return b.String(), text[i+1:]
		}
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}

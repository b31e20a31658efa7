package firewall

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/iptexec"
	"github.com/enipool/enipool/pkg/netconf"
)

// iptTables are those of iptables that may hold chains of ours.
func iptTables() []string { return []string{"mangle", "nat", "raw"} }

// parentChains are the chains of iptables that may jump to ours.
func parentChains() []string { return []string{"PREROUTING", "POSTROUTING", "INPUT", "OUTPUT"} }

// iptTable is what one table has of ours.
type iptTable struct {
	chains map[string][]string // our chains -> their rules
	jumps  map[string][]string // our chains -> the chains that jump to it, each as often as it does
}

// iptPlan returns what makes the chains of f so, and what removes those of other
// variants of iptables.
func iptPlan(ctx context.Context, f netconf.Firewall) ([]step, error) {
	var steps []step
	var used []tool
	for _, family := range kernelFamilies() {
		want := f.Iptables(family)
		t, err := findTool(family, plainName(family))
		switch {
		case isNotInstalled(err) && len(want) == 0:
			continue
		case err != nil:
			return nil, err
		}
		used = append(used, t)
		for _, table := range iptTables() {
			chains := slices.DeleteFunc(slices.Clone(want), func(c netconf.IptChain) bool { return c.Table != table })
			more, err := t.planTable(ctx, table, chains)
			if err != nil {
				return nil, err
			}
			steps = append(steps, more...)
		}
	}
	more, err := iptRemoval(ctx, used)
	return append(steps, more...), err
}

// iptRemoval returns what removes our chains from every variant of iptables on
// this node but those of keep. It runs a tool only where there is something for
// it to see, because merely looking makes the kernel set up empty tables.
func iptRemoval(ctx context.Context, keep []tool) ([]step, error) {
	var steps []step
	tools, err := findVariants(keep)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		for _, table := range iptTables() {
			more, err := t.planTable(ctx, table, nil)
			if err != nil {
				return nil, err
			}
			steps = append(steps, more...)
		}
	}
	return steps, nil
}

// planTable compares one table with the chains it should have of ours.
func (t tool) planTable(ctx context.Context, table string, want []netconf.IptChain) ([]step, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read %s table %s: %w", t.name, table, err)
	}
	have, err := t.readTable(table)
	if err != nil {
		return nil, err
	}
	p, known := planner{t: t, table: table}, maps.Clone(have.chains)
	for _, c := range want {
		if err := p.planChain(c, have); err != nil {
			return nil, err
		}
		delete(have.chains, c.Name)
	}
	for _, name := range sortedKeys(have.chains) {
		p.removeChain(name, have.jumps[name])
	}
	if n := len(p.steps); n > 0 {
		p.steps[n-1].redraws = redrawsVPC(want, known, have.chains)
	}
	return p.steps, nil
}

type planner struct {
	t     tool
	table string
	steps []step
}

func (p *planner) addStep(do func() error, format string, args ...any) {
	says := fmt.Sprintf("%s -t %s: %s", p.t.name, p.table, fmt.Sprintf(format, args...))
	p.steps = append(p.steps, step{says: []string{says}, do: do})
}

// addPutStep is step for what puts rules in place.
func (p *planner) addPutStep(do func() error, format string, args ...any) {
	p.addStep(do, format, args...)
	p.steps[len(p.steps)-1].translates = p.table == "nat"
}

// planChain plans for a chain that should be there. The chain is whole before a jump
// leads to it, and an old or damaged one goes only when no jump does.
func (p *planner) planChain(c netconf.IptChain, have iptTable) error {
	rules, found := have.chains[c.Name]
	if c.Fixed {
		return p.planFixedChain(c, rules, found)
	}
	jumps := have.jumps[c.Name]
	whole, err := p.t.isWhole(c, rules)
	if err != nil {
		return err
	}
	aside := ""
	if found && !whole {
		prefix, _, _ := strings.Cut(c.Name, "-") // who may remove c may remove this
		aside = prefix + "-OLD-" + c.Name[len(c.Name)-8:]
		if _, left := have.chains[aside]; left {
			p.removeChain(aside, have.jumps[aside])
			delete(have.chains, aside)
		}
		p.addStep(func() error { return p.t.RenameChain(p.table, c.Name, aside) }, "set damaged chain %s aside", c.Name)
	}
	if !found || aside != "" {
		p.addStep(func() error { return p.t.buildChain(c) }, "add chain %s", c.Name)
	}
	good := slices.DeleteFunc(slices.Clone(jumps), func(parent string) bool { return parent != c.Parent })
	if aside != "" || len(good) == 0 {
		p.addPutStep(func() error { return p.t.addJump(c) }, "jump from %s to %s", c.Parent, c.Name)
	}
	switch {
	case aside != "":
		p.removeChain(aside, jumps)
	case len(jumps) > 1 || len(jumps) > len(good):
		extra := slices.Clone(jumps)
		if i := slices.Index(extra, c.Parent); i >= 0 {
			extra = slices.Delete(extra, i, i+1)
		}
		p.removeJumps(c.Name, extra)
	}
	return nil
}

// planFixedChain plans for a chain whose rules change with the pods: the plugin writes
// it too, so it stays and gets its rules all at once.
func (p *planner) planFixedChain(c netconf.IptChain, rules []string, found bool) error {
	if !found {
		p.addStep(func() error { return p.t.NewChain(c.Table, c.Name) }, "add chain %s", c.Name)
	}
	whole, err := p.t.isWhole(c, rules)
	if err == nil && !whole {
		p.addPutStep(func() error {
			return iptexec.RestoreBy(p.t.path+"-restore", netconf.IptRestore([]netconf.IptChain{c}), 0)
		}, "put the rules of chain %s right", c.Name)
	}
	return err
}

// redrawsVPC tells whether a chain comes or goes that tells what is inside the VPC, and tells it
// otherwise than the one before it did. Of the known chains the surplus ones go.
func redrawsVPC(want []netconf.IptChain, known, surplus map[string][]string) bool {
	var was, is []string
	changes := false
	for _, c := range want {
		if inside, tells := netconf.IptInside(c.Name, c.Rules); tells {
			_, found := known[c.Name]
			is, changes = inside, changes || !found
		}
	}
	for name, rules := range surplus {
		if inside, tells := netconf.IptInside(name, rules); tells {
			was, changes = inside, true
		}
	}
	return changes && !slices.Equal(was, is)
}

func (p *planner) removeJumps(name string, parents []string) {
	for _, parent := range parents {
		p.addStep(func() error { return p.t.Delete(p.table, parent, "-j", name) }, "remove a jump from %s to %s", parent, name)
	}
}

func (p *planner) removeChain(name string, jumps []string) {
	p.removeJumps(name, jumps)
	p.addStep(func() error { return p.t.ClearAndDeleteChain(p.table, name) }, "remove chain %s", name)
}

// buildChain makes a chain that nothing leads to yet.
func (t tool) buildChain(c netconf.IptChain) error {
	if err := t.NewChain(c.Table, c.Name); err != nil {
		return err
	}
	for _, r := range c.Rules {
		if err := t.Append(c.Table, c.Name, strings.Fields(r)...); err != nil {
			return err
		}
	}
	return nil
}

func (t tool) addJump(c netconf.IptChain) error {
	if c.First {
		return t.Insert(c.Table, c.Parent, 1, "-j", c.Name)
	}
	return t.Append(c.Table, c.Parent, "-j", c.Name)
}

// isWhole tells whether rules are those of the chain. Versions of iptables print
// some rules in other words than ours; then iptables itself has to compare.
func (t tool) isWhole(c netconf.IptChain, rules []string) (bool, error) {
	switch {
	case slices.Equal(rules, c.Rules):
		return true, nil
	case len(rules) != len(c.Rules):
		return false, nil
	}
	for i, r := range c.Rules {
		if slices.Contains(c.Rules, rules[i]) && rules[i] != r {
			return false, nil // in the wrong place
		}
		same, err := t.Exists(c.Table, c.Name, strings.Fields(r)...)
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// readTable returns what the table has of ours.
func (t tool) readTable(table string) (iptTable, error) {
	have := iptTable{map[string][]string{}, map[string][]string{}}
	// The kernel is asked first: to list a table that is not there makes it.
	there, err := t.hasTable(table)
	if err != nil || !there {
		return have, err
	}
	lines, err := t.dumpTable(table)
	if err != nil {
		return have, err
	}
	for _, line := range lines {
		what, rest, _ := strings.Cut(line, " ")
		chain, rule, _ := strings.Cut(rest, " ")
		ours := netconf.IsIptChain(chain)
		name, isJump := strings.CutPrefix(rule, "-j ")
		switch {
		case ours && what == "-N":
			have.chains[chain] = nil
		case ours && what == "-A":
			have.chains[chain] = append(have.chains[chain], rule)
		case what == "-A" && isJump && netconf.IsIptChain(name) && slices.Contains(parentChains(), chain):
			have.jumps[name] = append(have.jumps[name], chain)
		}
	}
	return have, nil
}

// dumpTable returns all lines of the table in one call: on a busy node each start of the
// program counts, and the agent is not ready before the packet filter is.
func (t tool) dumpTable(table string) ([]string, error) {
	cmd := exec.Command(t.path, "--wait", strconv.Itoa(lockWait), "-t", table, "-S")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s table %s: %w: %s", t.name, table, err, strings.TrimSpace(stderr.String()))
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

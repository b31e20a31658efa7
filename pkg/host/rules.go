package host

import (
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// absent are the errors by which the kernel says that what is to be removed is not
// there.
var absent = []unix.Errno{unix.ENOENT, unix.ESRCH, unix.ENODEV}

// AddRules adds source rules of an address that has no link of ours.
func (h *Host) AddRules(rules []netconf.Rule) error {
	b := &batch{}
	removed := b.replaceRules(rules)
	if err := h.conn.send(b); err != nil {
		return err
	}
	return h.conn.removeMore(removed, rules)
}

// replaceRules adds the rules in the place of what ours of the same source led to.
// removeMore says how that ends.
func (b *batch) replaceRules(rules []netconf.Rule) (removed []*request) {
	removed = b.delRulesFrom(rules)
	for _, r := range rules {
		b.addRule(r).tolerating(unix.EEXIST)
	}
	return removed
}

// removeMore ends a replacement of rules: if there was one of an earlier life there
// may be more of them, which the kernel would find before ours.
func (c *conn) removeMore(removed []*request, rules []netconf.Rule) error {
	if !slices.ContainsFunc(removed, (*request).done) {
		return nil
	}
	if err := c.delRules(rules); err != nil {
		return err
	}
	b := &batch{}
	for _, r := range rules {
		b.addRule(r).tolerating(unix.EEXIST)
	}
	return c.send(b)
}

// delRules removes every rule of ours of the same source at the same priority,
// whatever table it leads to: a stale one would send a pod out through the wrong ENI.
// Those of others tell that the address is held, see Occupancy.
func (c *conn) delRules(rules []netconf.Rule) error {
	for {
		b := &batch{}
		removed := b.delRulesFrom(rules)
		if err := c.send(b); err != nil || !slices.ContainsFunc(removed, (*request).done) {
			return err
		}
	}
}

// delRulesFrom removes one rule of each source.
func (b *batch) delRulesFrom(rules []netconf.Rule) (removed []*request) {
	for i, r := range rules {
		if i == 0 || rules[i-1].From != r.From {
			removed = append(removed, b.delRuleFrom(r).tolerating(absent...))
		}
	}
	return removed
}

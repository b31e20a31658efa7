package firewall

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Limits of a netlink socket: a transaction is one message to the kernel, so
// thousands of elements need more than the usual buffer; and nobody waits longer
// than the deadline for an answer that does not come.
const (
	nftBuffer   = 8 << 20 // bytes
	nftDeadline = 30 * time.Second
)

func nftConn() (*nftables.Conn, error) {
	return nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		// Without the right for the large buffer the kernel gives what it may.
		return errors.Join(c.SetWriteBuffer(nftBuffer), c.SetReadBuffer(nftBuffer),
			c.SetOption(netlink.CapAcknowledge, true), c.SetDeadline(time.Now().Add(nftDeadline)))
	}))
}

func nftTable(name string) *nftables.Table {
	return &nftables.Table{Name: name, Family: nftables.TableFamilyINet}
}

// noNftables tells whether err says that this kernel has no nftables, or none
// that this process may see: then nothing of ours is there.
func noNftables(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)
}

func nftWorks() error {
	c, err := nftConn()
	if err == nil {
		for _, t := range sampleFirewall().Tables() {
			w := nftWriter{c, nftTable(t.Name + "-try")}
			if err = w.queueTable(t); err != nil {
				break
			}
			// In the same transaction: nobody ever sees the table, not even after a crash.
			c.DelTable(w.table)
		}
	}
	if err == nil {
		err = c.Flush()
	}
	if err != nil {
		return fmt.Errorf("try nftables: %w; %s", summary{err}, adviceFor(err,
			"load the kernel modules nf_tables, nft_ct, nft_chain_nat and nft_fib_inet, or use firewall iptables with routing rule"))
	}
	return nil
}

// adviceFor returns what to do about an error of a firewall: modules don't help a process
// that may not change it.
func adviceFor(err error, modules string) string {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || strings.Contains(err.Error(), "must be root") {
		return "the kernel forbids it: run this as root with CAP_NET_ADMIN, or look for a program that owns the tables (nft list tables)"
	}
	return modules
}

func nftRemoval() ([]step, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	var steps []step
	for _, t := range (netconf.Firewall{}).Tables() {
		found, err := findTable(c, t.Name)
		if err != nil {
			return nil, err
		}
		if found != nil {
			steps = append(steps, nftRemoveTable(c, found))
		}
	}
	return steps, nil
}

func nftRemoveTable(c *nftables.Conn, t *nftables.Table) step {
	return step{says: []string{"nftables: remove table inet " + t.Name}, do: func() error {
		c.DelTable(t)
		return c.Flush()
	}}
}

// findTable returns our table of the name, nil if there is none.
func findTable(c *nftables.Conn, name string) (*nftables.Table, error) {
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		if noNftables(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list nftables tables: %w", err)
	}
	for _, t := range tables {
		if t.Name == name && t.Family == nftables.TableFamilyINet {
			return t, nil
		}
	}
	return nil, nil
}

func nftPlan(f netconf.Firewall) ([]step, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	var steps []step
	for _, want := range f.Tables() {
		more, err := nftPlanTable(c, want)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// nftPlanTable returns at most one step: every change of a table is one transaction.
func nftPlanTable(c *nftables.Conn, want netconf.NftTable) ([]step, error) {
	w := nftWriter{c, nftTable(want.Name)}
	rebuild := func(why string) []step {
		return []step{{says: []string{why}, do: func() error { return w.rebuildTable(want) }, effect: effect{translates: true}}}
	}
	found, err := findTable(c, want.Name)
	unwanted := len(want.Chains) == 0
	switch {
	case err != nil || unwanted && found == nil:
		return nil, err
	case unwanted:
		return []step{nftRemoveTable(c, found)}, nil
	case found == nil:
		return rebuild("nftables: create table inet " + want.Name), nil
	}
	again := "nftables: make table inet " + want.Name + " from scratch: "
	have, err := readNft(c, found)
	if err != nil {
		return rebuild(again + whyUnread(err)), nil
	}
	if why := have.rebuildCause(want); why != "" {
		return rebuild(again + why), nil
	}
	d := have.diffTo(want)
	if len(d.says) == 0 {
		return nil, nil
	}
	return []step{{says: d.says, effect: d.effectOnNat(), do: func() error {
		err := w.applyDiff(d)
		if err == nil {
			return nil
		}
		// Something stands in the way that can't be read, or somebody changed
		// the table since it was.
		if again := w.rebuildTable(want); again != nil {
			return errors.Join(err, again)
		}
		return nil
	}}}, nil
}

// nftDiff is what turns the table into the wanted one without touching the rest. Chains come
// and go with ENIs, so a table that was rebuilt where one differs would be rebuilt often: that
// takes 29 ms instead of 8 with 500 addresses, and nothing would tell that packets were
// translated all along, so that flows were forgotten: seconds where there are many.
type nftDiff struct {
	table       string // named where it is not the main one
	says        []string
	flush       []string // chains whose rules go
	delElements []elements
	delSets     []string
	delChains   []string
	addChains   []netconf.NftChain
	addSets     []netconf.NftSet // without elements
	addElements []elements
	addRules    []netconf.NftChain
}

// elements are some of the elements of a set.
type elements struct {
	set  netconf.NftSet
	list []nftables.SetElement
}

// effectOnNat tells what of translations the difference concerns.
func (d *nftDiff) effectOnNat() (e effect) {
	e.translates = slices.ContainsFunc(d.addRules, netconf.NftChain.Translates)
	e.redraws = slices.ContainsFunc(d.delSets, netconf.NftHoldsVPC) ||
		slices.ContainsFunc(slices.Concat(d.addElements, d.delElements), func(e elements) bool { return netconf.NftHoldsVPC(e.set.Name) })
	for _, added := range d.addElements {
		e.translates = e.translates || len(added.list) > 0 && netconf.NftHoldsPorts(added.set.Name)
		if !netconf.NftHoldsPool(added.set.Name) {
			continue
		}
		for _, element := range added.list {
			if a, ok := netip.AddrFromSlice(element.Key); ok {
				e.admits = append(e.admits, a)
			}
		}
	}
	return e
}

func (d *nftDiff) addLine(format string, args ...any) {
	what := "nftables: "
	if d.table != netconf.NftTableName {
		what += d.table + ": "
	}
	d.says = append(d.says, what+fmt.Sprintf(format, args...))
}

func (h nftHave) diffTo(want netconf.NftTable) nftDiff {
	d := nftDiff{table: want.Name}
	for _, c := range want.Chains {
		rules, found := h.rules[c.Name]
		switch {
		case !found:
			d.addLine("add chain %s", c.Name)
			d.addChains, d.addRules = append(d.addChains, c), append(d.addRules, c)
		case !slices.Equal(rules, commentsOf(c)):
			d.addLine("put the rules of chain %s right", c.Name)
			d.flush, d.addRules = append(d.flush, c.Name), append(d.addRules, c)
		}
		delete(h.rules, c.Name)
	}
	// Flushed too, because its rules may lead to another chain that goes, which the kernel keeps
	// as long as a rule leads to it.
	for _, name := range sortedKeys(h.rules) {
		d.addLine("remove chain %s", name)
		d.flush, d.delChains = append(d.flush, name), append(d.delChains, name)
	}
	for _, s := range want.Sets {
		if _, found := h.sets[s.Name]; !found {
			d.addLine("add %s %s with %d elements", setKind(s), s.Name, len(s.Elements))
			d.addSets, d.addElements = append(d.addSets, s), append(d.addElements, elements{s, encodeElements(s)})
		} else {
			d.compareSet(s, h.elements[s.Name])
		}
		delete(h.sets, s.Name)
	}
	for _, name := range sortedKeys(h.sets) {
		d.addLine("remove set or map %s", name)
		d.delSets = append(d.delSets, name)
	}
	return d
}

// compareSet finds the elements that differ. The element of another verdict goes
// and comes back, and so do all of an interval set, whose bounds hang together.
func (d *nftDiff) compareSet(s netconf.NftSet, have map[string]nftables.SetElement) {
	var add, del []nftables.SetElement
	want := encodeElements(s)
	wrong := maps.Clone(have)
	for _, e := range want {
		h, found := have[elementID(e)]
		if !found || verdictOf(h) != verdictOf(e) || !bytes.Equal(h.Val, e.Val) {
			add = append(add, e)
		} else {
			delete(wrong, elementID(e))
		}
	}
	del = byID(wrong)
	if len(add)+len(del) == 0 {
		return
	}
	d.addLine("put %s %s right:%s%s", setKind(s), s.Name, listSome(" remove", s, del), listSome(" add", s, add))
	if s.Interval {
		del, add = byID(have), want
	}
	d.delElements, d.addElements = append(d.delElements, elements{s, del}), append(d.addElements, elements{s, add})
}

func byID(m map[string]nftables.SetElement) []nftables.SetElement {
	var list []nftables.SetElement
	for _, id := range sortedKeys(m) {
		list = append(list, m[id])
	}
	return list
}

// listSome names the first few elements and counts the others.
func listSome(verb string, s netconf.NftSet, list []nftables.SetElement) string {
	const few = 3
	var names []string
	for _, e := range list {
		name := keyText(s, e.Key)
		if e.IntervalEnd {
			name = "end " + name
		}
		names = append(names, name)
	}
	switch more := len(names) - few; {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf("%s %s and %d more", verb, strings.Join(names[:few], ", "), more)
	}
	return verb + " " + strings.Join(names, ", ")
}

func setKind(s netconf.NftSet) string {
	if s.Verdicts || s.Data != "" {
		return "map"
	}
	return "set"
}

func commentsOf(c netconf.NftChain) []string {
	var list []string
	for _, r := range c.Rules {
		list = append(list, r.Comment())
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

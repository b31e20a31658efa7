package firewall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// nftHave is our table as the kernel has it.
type nftHave struct {
	flags    uint32
	chains   map[string]*nftables.Chain
	rules    map[string][]string // chain -> comments of its rules in order
	sets     map[string]*nftables.Set
	elements map[string]map[string]nftables.SetElement // set -> id -> element
}

// readNft reads the table. While somebody changes nftables a list may lack
// something; putting it there again does no harm, and the next look is right.
func readNft(c *nftables.Conn, table *nftables.Table) (nftHave, error) {
	h := nftHave{flags: table.Flags, chains: map[string]*nftables.Chain{}, rules: map[string][]string{},
		sets: map[string]*nftables.Set{}, elements: map[string]map[string]nftables.SetElement{}}
	chains, err := c.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return h, fmt.Errorf("list chains: %w", err)
	}
	for _, chain := range chains {
		if chain.Table.Name != table.Name {
			continue
		}
		h.chains[chain.Name] = chain
		if h.rules[chain.Name], err = readComments(c, table, chain); err != nil {
			return h, err
		}
	}
	sets, err := c.GetSets(table)
	if err != nil {
		return h, fmt.Errorf("list sets: %w", err)
	}
	for _, set := range sets {
		if set.Anonymous {
			continue
		}
		h.sets[set.Name] = set
		if h.elements[set.Name], err = readElements(c, set); err != nil {
			return h, err
		}
	}
	return h, nil
}

// whyUnread says why the table could not be read, without the words of the library.
func whyUnread(err error) string {
	number, is := errors.AsType[unix.Errno](err)
	switch {
	case is && number == unix.ENOENT:
		return "somebody removed it, or a part of it, while it was read"
	case is:
		return "it can't be read: " + number.Error()
	}
	return "it can't be read: " + err.Error()
}

func readComments(c *nftables.Conn, table *nftables.Table, chain *nftables.Chain) ([]string, error) {
	rules, err := c.GetRules(table, chain)
	if err != nil {
		return nil, fmt.Errorf("list rules of chain %s: %w", chain.Name, err)
	}
	var list []string
	for _, r := range rules {
		comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
		list = append(list, comment)
	}
	return list, nil
}

func readElements(c *nftables.Conn, set *nftables.Set) (map[string]nftables.SetElement, error) {
	list, err := c.GetSetElements(set)
	if err != nil {
		return nil, fmt.Errorf("list elements of %s: %w", set.Name, err)
	}
	found := make(map[string]nftables.SetElement, len(list))
	for _, e := range list {
		if set.DataType.Name == nftables.TypeVerdict.Name || set.KeyType.Name == nftables.TypeVerdict.Name {
			e.VerdictData, e.Val = decodeVerdict(e.Val), nil
		}
		found[elementID(e)] = e
	}
	return found, nil
}

// decodeVerdict reads what the library leaves as bytes: the netlink attributes
// of a verdict. Anything else is nil.
func decodeVerdict(b []byte) *expr.Verdict {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return nil
	}
	ad.ByteOrder = binary.BigEndian
	var v expr.Verdict
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_VERDICT_CODE:
			v.Kind = expr.VerdictKind(int32(ad.Uint32()))
		case unix.NFTA_VERDICT_CHAIN:
			v.Chain = ad.String()
		}
	}
	if ad.Err() != nil {
		return nil
	}
	return &v
}

// elementID tells elements of a set apart: an interval that ends where another
// begins has the same key.
func elementID(e nftables.SetElement) string {
	if e.IntervalEnd {
		return string(e.Key) + "end"
	}
	return string(e.Key)
}

func verdictOf(e nftables.SetElement) expr.Verdict {
	if e.VerdictData == nil {
		return expr.Verdict{}
	}
	return *e.VerdictData
}

// rebuildCause returns why the table can't be turned into the wanted one part by
// part, "" if it can.
func (h nftHave) rebuildCause(want netconf.NftTable) string {
	if h.flags != 0 {
		return "it has flags"
	}
	for _, c := range want.Chains {
		if have, found := h.chains[c.Name]; found && !sameChain(have, c) {
			return "chain " + c.Name + " is of another type, hook, priority or policy"
		}
	}
	for _, s := range want.Sets {
		if have, found := h.sets[s.Name]; found && !sameSet(have, s) {
			return setKind(s) + " " + s.Name + " is of another type"
		}
	}
	return ""
}

func sameChain(have *nftables.Chain, want netconf.NftChain) bool {
	w := nftChain(nil, want)
	if w.Hooknum == nil || have.Hooknum == nil {
		return w.Hooknum == have.Hooknum
	}
	return have.Type == w.Type && *have.Hooknum == *w.Hooknum && *have.Priority == *w.Priority &&
		have.Policy != nil && *have.Policy == *w.Policy
}

// sameSet does not compare the key type of maps to verdicts, which the library
// overwrites; the kernel refuses elements of the wrong one.
func sameSet(have *nftables.Set, want netconf.NftSet) bool {
	if have.IsMap != (want.Verdicts || want.Data != "") || have.Interval != want.Interval || have.HasTimeout || have.Constant || have.Dynamic {
		return false
	}
	if want.Verdicts {
		return have.KeyType.Name == nftables.TypeVerdict.Name || have.DataType.Name == nftables.TypeVerdict.Name
	}
	if want.Data != "" && have.DataType.Name != want.Data {
		return false
	}
	return have.KeyType.Name == want.Type
}

// keyText returns the key of an element for people.
func keyText(s netconf.NftSet, key []byte) string {
	switch s.Type {
	case "ifname":
		return string(bytes.TrimRight(key, "\x00"))
	case "mark":
		if len(key) == 4 {
			return netconf.NftMark(binaryutil.NativeEndian.Uint32(key)).String()
		}
	}
	if strings.Contains(s.Type, " . ") {
		return concatenationText(s.Type, key)
	}
	if a, ok := netip.AddrFromSlice(key); ok {
		return a.String()
	}
	return fmt.Sprintf("%x", key)
}
